import { orAborted } from '../../base/abort.js';

/** A message of the server that is no reply. */
export interface ServerMessage {
  readonly routine?: string | undefined;
  readonly payload?: string | undefined;
}

/**
 * A `PoolClient` of `pg`, by what is used of it: published types do not refer to a package that only some users
 * install.
 */
export interface PostgresClient {
  /** The process that serves it; another one, where a pooler is between. */
  readonly processID?: number | null | undefined;
  query(sql: string, values?: unknown[]): Promise<{ readonly rows: readonly unknown[] }>;
  on(event: 'notice' | 'notification' | 'end', listener: (message: ServerMessage) => void): unknown;
  off(event: 'notice', listener: (message: ServerMessage) => void): unknown;
  /** @param destroy whether to close its connection */
  release(destroy?: boolean): void;
}

/** A server, and connections to it. */
export interface PostgresServer {
  /** `HOST:PORT`. */
  readonly address: string;
  /** A `Pool` of `pg`. Its connections need listeners for `error`. */
  readonly pool: { connect(): Promise<PostgresClient>; end(): Promise<void> };
}

/** A connection that is free, or a new one. */
export async function connected({ pool }: PostgresServer, signal: AbortSignal): Promise<PostgresClient> {
  const connecting = pool.connect();
  try {
    return await orAborted(connecting, signal);
  } catch (error) {
    connecting.then(
      (late) => late.release(),
      () => undefined,
    );
    throw error;
  }
}
