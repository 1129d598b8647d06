import type { Pool, PoolClient } from 'pg';
import { orAborted } from '../../base/abort.js';
import { fieldOf } from '../../base/fields.js';
import type { ListedObject, StoredObject, StoreError, StoreFact } from '../lease-store.js';
import type { ObjectStoreOptions } from '../store-driver.js';
import { atOneOf, type StoreRequest, withinRequestTime } from '../store-request.js';
import { classifyReply } from './classify-reply.js';
import { BARRIER, CREATE_TABLE } from './statements.js';

/** A row of an answer. Each statement returns a part of it. */
export type Row = StoredObject &
  ListedObject &
  StoreFact & { readonly epoch: string; readonly isPooled: boolean };

/** The servers of a cluster, of which one takes writes. */
export class PostgresCluster {
  #current = 0;
  /**
   * The failure of a write that may be applied, and be missing at a synchronous standby. What a read shows proves
   * nothing before that standby has it.
   */
  #doubt: unknown;

  /** @param servers connections to each, at least one; with listeners for `error` */
  constructor(
    private readonly options: ObjectStoreOptions,
    private readonly servers: readonly Pool[],
  ) {}

  /** A connection that is free, or a new one, to the server that was used last. */
  connect(signal: AbortSignal): Promise<PoolClient> {
    const connecting = this.#server.connect();
    return orAborted(connecting, signal).catch((error) => {
      connecting.then(
        (late) => late.release(),
        () => undefined,
      );
      throw error;
    });
  }

  /** Ends all connections. Idempotent. */
  async close(): Promise<void> {
    for (const pool of this.servers) if (!pool.ending) await pool.end();
  }

  get #server(): Pool {
    return this.servers[this.#current] as Pool;
  }

  /**
   * Makes a statement at the server that was used last, and at the others where that one is away or a replica.
   *
   * @returns no row where another write came first
   * @throws {StoreError}
   */
  call(request: StoreRequest, statement: string, values?: unknown[]): Promise<readonly Row[]> {
    const isRead = ['read', 'list'].includes(request.operation);
    return withinRequestTime(this.options, request.signal, async (limit) => {
      for (let left = this.servers.length - 1; ; left -= 1) {
        const [current, doubt] = [this.#current, this.#doubt];
        const limits = atOneOf(isRead && left > 0 ? this.servers.length : 1, this.options);
        try {
          return await withinRequestTime(limits, limit, async (part) => {
            if (isRead && doubt !== undefined) {
              await this.#ask(part, request, BARRIER);
              if (this.#doubt === doubt) this.#doubt = undefined;
            }
            return this.#ask(part, request, statement, values);
          });
        } catch (error) {
          const { transient, outcome } = error as StoreError;
          if (outcome === 'unknown' && !isRead) this.#doubt = error;
          if (transient && this.#current === current) this.#current = (current + 1) % this.servers.length;
          if (!transient || (outcome === 'unknown' && !isRead) || left === 0 || limit.aborted) throw error;
        }
      }
    });
  }

  /** Makes a statement at the current server, and the table where there is none. */
  async #ask(
    limit: AbortSignal,
    request: StoreRequest,
    statement: string,
    values?: unknown[],
  ): Promise<readonly Row[]> {
    const { clock } = this.options;
    const { host, port } = this.#server.options;
    let client: PoolClient | undefined;
    let warning: unknown;
    try {
      client = await this.connect(limit);
      client.on('notice', (notice) => {
        // The function that warns of a commit whose wait for a synchronous standby was cancelled.
        if (fieldOf(notice, 'routine') === 'SyncRepWaitForLSN') warning = notice;
      });
      const sentAt = clock.monotonic();
      const { rows } = await orAborted(client.query(statement, values), limit);
      const tookMs = clock.monotonic() - sentAt;
      if (warning !== undefined) throw warning;
      client.removeAllListeners('notice');
      client.release();
      // The server's time was read when the statement began, and a write may have waited since.
      return rows.map(({ now, age, ...row }) => ({
        ...row,
        age: { min: age ?? 0, max: age ?? Number.POSITIVE_INFINITY },
        storeTime: { min: now, max: now + tookMs },
        isPooled: row.pid !== fieldOf(client, 'processID'),
      }));
    } catch (error) {
      // A reply that comes late must not be taken for that of another statement.
      client?.release(true);
      const isSent = client !== undefined;
      if (classifyReply(error, request, `${host}:${port}`, isSent) === 'conflict') return [];
      await this.#ask(limit, { ...request, operation: 'create' }, CREATE_TABLE);
      return this.#ask(limit, request, statement, values);
    }
  }
}
