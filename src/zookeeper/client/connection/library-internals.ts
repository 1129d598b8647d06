import type { Socket } from 'node:net';
import { Answer } from './messages.js';

// The internals of the library that are used and replaced, since its public interface does not allow a safe
// use:
// - `connect` and the timers behind it: the search for a server is ours (`library-connection.ts`);
// - `packetQueue`, `xid`, `zxid`: requests are written and answered past the library (`request-pipeline.ts`);
// - `onSocketData`: messages are cut and checked, and few of them reach the library (`MessageGuard`, below).
// package.json pins the version. Another version is refused when a client opens, see `connectionOf`.

/** The part of the library's client that is used, its insides visible. The library publishes no types. */
export interface LibraryClient {
  readonly connectionManager: ConnectionManager;
  addAuthInfo(scheme: string, auth: Buffer): void;
  connect(): void;
  close(): void;
  getSessionId(): Buffer;
  getSessionTimeout(): number;
  on(event: 'connected' | 'expired' | 'authenticationFailed', listener: () => void): this;
}

/** The library's connection: finds a server, speaks the protocol, and changes to another server by itself. */
export interface ConnectionManager {
  /** 1 until a session is confirmed over this connection. */
  readonly state: number;
  /** How long the socket may be idle before the library sends a ping, in milliseconds; 0 is never. */
  pingTimeout: number;
  /** Undefined until the first attempt. */
  socket: Socket | undefined;
  /** The greatest transaction it has seen. A server that is behind it refuses the connection. */
  zxid: Buffer;
  /** The number of the next request, sent as 32 bits. */
  xid: number;
  /** The library's own requests that have not been written to the socket yet. */
  readonly packetQueue: { readonly queue: unknown[] };
  setState(state: number): void;
  /** Opens a socket to the next server. */
  connect(): void;
  onSocketConnected(): void;
  onSocketDrain(): void;
  onSocketData(bytes: Buffer): void;
  onSocketClosed(hadError: boolean): void;
}

const MEMBERS: Readonly<Record<Exclude<keyof ConnectionManager, 'socket'>, string>> = {
  state: 'number',
  pingTimeout: 'number',
  zxid: 'object',
  xid: 'number',
  packetQueue: 'object',
  setState: 'function',
  connect: 'function',
  onSocketConnected: 'function',
  onSocketDrain: 'function',
  onSocketData: 'function',
  onSocketClosed: 'function',
};

/** The connection of a client of the library. @throws Error when it has other insides than 1.1.3 */
export function connectionOf(client: Pick<LibraryClient, 'connectionManager'>): ConnectionManager {
  const manager = client.connectionManager;
  for (const [name, type] of Object.entries(MEMBERS) as [keyof ConnectionManager, string][]) {
    if (typeof manager?.[name] === type) continue;
    throw new Error(`node-zookeeper-client 1.1.3 is needed: this version has no ${type} ${name}`);
  }
  return manager;
}

/** No server sends a message this large: one that seems to speaks another protocol. */
const LONGEST_MESSAGE = 1 << 26;

/**
 * The library's name for a connection over which no session is confirmed yet: the one message that comes then
 * is of another form.
 */
export const CONNECTING = 1;

/**
 * The position of the xid in an answer, and of its body. A notification, a ping, and an answer on credentials
 * have a negative xid.
 */
const XID_AT = 4;
const BODY_AT = 20;

/** The xid of a notification, and the type of one for a znode that was removed. */
const NOTIFICATION = -1;
const NODE_DELETED = 2;

/** Receives what is not for the library. */
interface MessageListener {
  /** A one-shot watch on the znode has fired; `isGone` when because the znode was removed. */
  changed(path: string, isGone: boolean): void;
  /** An answer. Returns false where no request of this number is the next one to be answered. */
  answered(xid: number, answer: Buffer): boolean;
  /** Something that cannot be understood: the connection is of no more use. */
  nonsense(problem: string): void;
}

/**
 * A filter between the socket and the library, whose handling of messages can kill the process. The library
 * throws for codes and events that it does not know, in a socket's handler where no code can catch that. It
 * calls itself once for each message of a burst. And it takes the rest of a message from a broken connection
 * for the beginning of the next one.
 *
 * The guard cuts the stream into messages itself, and passes them on one at a time: to the library only what
 * begins and ends a session. It gives up the connection where one cannot be understood.
 */
export class MessageGuard {
  /** The last whole message came at this time of the monotonic clock, or later. */
  lastHeard = 0;
  /**
   * When the clock was last read, on the monotonic clock. The connection sets it when a socket connects and
   * when it probes, the pipeline at the start of each turn with requests. {@link lastHeard} takes it, since
   * reading the clock for each message would be slow, and an earlier time is safe.
   */
  readAt = Number.NEGATIVE_INFINITY;
  #rest: Buffer = Buffer.alloc(0);
  readonly #library: (message: Buffer) => void;

  constructor(
    private readonly manager: ConnectionManager,
    private readonly listener: MessageListener,
  ) {
    this.#library = manager.onSocketData.bind(manager);
    manager.onSocketData = (bytes) => this.#take(bytes);
  }

  /** A new connection begins: the rest of the last one is dropped. */
  reset(): void {
    this.#rest = Buffer.alloc(0);
  }

  #take(bytes: Buffer): void {
    const { socket } = this.manager;
    let buffer = this.#rest.length === 0 ? bytes : Buffer.concat([this.#rest, bytes]);
    this.#rest = Buffer.alloc(0);
    while (buffer.length >= 4) {
      const end = buffer.readInt32BE(0) + 4;
      if (end < 4 || end > LONGEST_MESSAGE) {
        this.listener.nonsense('it does not speak the protocol of ZooKeeper');
        return;
      }
      if (buffer.length < end) break;
      this.lastHeard = this.readAt;
      try {
        this.#handOver(buffer.subarray(0, end));
      } catch (error) {
        this.listener.nonsense(
          `its answer cannot be understood: ${error instanceof Error ? error.message : String(error)}`,
        );
        return;
      }
      // Something in it may have ended the connection.
      if (socket !== this.manager.socket || socket?.destroyed) return;
      buffer = buffer.subarray(end);
    }
    this.#rest = buffer;
  }

  #handOver(message: Buffer) {
    const isWhole = this.manager.state !== CONNECTING && message.length >= BODY_AT;
    const xid = isWhole ? message.readInt32BE(XID_AT) : undefined;
    if (xid === NOTIFICATION) {
      const { type, path } = new Answer(message).event();
      this.listener.changed(path, type === NODE_DELETED);
    } else if (xid === undefined || !this.listener.answered(xid, message)) this.#library(message);
  }
}
