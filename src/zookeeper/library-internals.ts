import type { Socket } from 'node:net';
import type { Client, Exception } from 'node-zookeeper-client';

/** What is used of the library's insides (node-zookeeper-client 1.1.3), where its public side does not let it be used safely. */
export interface LibraryInternals {
  readonly connectionManager: ConnectionManager;
}

/** The library's connection: finds a server, speaks the protocol, and goes on to another server by itself. */
export interface ConnectionManager {
  /** 1 until a session is confirmed over this connection. */
  readonly state: number;
  /** Undefined until the first attempt. */
  readonly socket: Socket | undefined;
  /** The greatest transaction it has seen. A server that is behind it refuses the connection. */
  zxid: Buffer;
  /** The number of the next request, sent as 32 bits. */
  xid: number;
  /** Requests that have not been written to the socket yet. */
  readonly packetQueue: { readonly queue: unknown[] };
  readonly watcherManager: WatcherManager;
  readonly connectTimeoutHandler: NodeJS.Timeout | null;
  findNextServer(callback: (server: { readonly host: string; readonly port: number }) => void): void;
  onSocketConnected(): void;
  onSocketData(bytes: Buffer): void;
  onSocketClosed(hadError: boolean): void;
}

/** Where the library keeps one-shot watches. */
export interface WatcherManager {
  emit(event: { readonly type: number; readonly path: string }): void;
  registerDataWatcher(path: string, watcher: unknown): void;
  registerChildWatcher(path: string, watcher: unknown): void;
  registerExistenceWatcher(path: string, watcher: unknown): void;
}

/** The operations of a transaction that is being built. */
export interface TransactionInternals {
  readonly ops: { version?: number }[];
}

/** The library's client, its insides visible. */
export type LibraryClient = Client & LibraryInternals;

/** Makes the insides visible. */
export function insidesOf(client: Client): LibraryClient {
  return client as LibraryClient;
}

/** What the library's callbacks are given in place of a result. */
export type LibraryError = Error | Exception;
