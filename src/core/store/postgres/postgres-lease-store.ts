import { createHash, randomUUID } from 'node:crypto';
import type { Pool, PoolClient } from 'pg';
import { orAborted } from '../../base/abort.js';
import type { Clock } from '../../base/clock.js';
import { fieldOf } from '../../base/fields.js';
import type { Heed } from '../changes.js';
import type {
  LeaseStore,
  ListedObject,
  Listing,
  ListOptions,
  StoreCallOptions,
  StoredObject,
  StoreError,
  StoreFact,
  WriteResult,
} from '../lease-store.js';
import { type ConditionalWrite, type ObjectStoreOptions, StoreDriver } from '../store-driver.js';
import { type Operation, type StoreRequest, withinRequestTime } from '../store-request.js';
import { ChangeListener, type ListeningStore } from './change-listener.js';
import { classifyReply } from './classify-reply.js';
import * as sql from './statements.js';

/** A server of the cluster. */
export interface PostgresServer {
  /** `HOST:PORT`. */
  readonly address: string;
  /** Its connections need listeners for `error`. */
  readonly pool: Pool;
}

/** A row of an answer. Each statement returns a part of it. */
type Row = StoredObject & ListedObject & StoreFact & { readonly epoch: string; readonly isPooled: boolean };

/** The function of the server that warns of a commit whose wait for a synchronous standby was cancelled. */
const SYNCHRONOUS_WAIT = 'SyncRepWaitForLSN';

/**
 * Leases in the table `nodelease` of PostgreSQL, a row each. Each call is one statement, and repeats none whose
 * outcome is unknown. Etags are random: a counter would come again after a promotion that lost writes.
 *
 * Ages are those by the server's clock. Those of rows of another epoch are unknown: `observedAge` knows them.
 */
export class PostgresLeaseStore extends StoreDriver implements LeaseStore, ListeningStore {
  override readonly timeStepMs = 0;
  readonly clock: Clock;
  readonly #channel: string;
  readonly #listener: ChangeListener;
  /** Resolves after the last notification. */
  #notified: Promise<unknown> = Promise.resolve();
  #current = 0;
  /**
   * The failure of a write that may be applied, and be missing at a synchronous standby. What a read shows proves
   * nothing before that standby has it.
   */
  #doubt: unknown;

  /** Nothing is sent yet. @param servers at least one */
  constructor(
    url: string,
    private readonly options: Omit<ObjectStoreOptions, 'endpoint'>,
    private readonly servers: readonly PostgresServer[],
  ) {
    super(url, options.prefix);
    this.clock = options.clock;
    // At most 63 bytes, as an identifier.
    this.#channel = `nodelease:${createHash('sha256').update(options.prefix).digest('base64url')}`;
    this.#listener = new ChangeListener(this.#channel, this);
  }

  async read(key: string, options?: StoreCallOptions): Promise<StoredObject | undefined> {
    const [row] = await this.#call(this.request('read', options, key), sql.READ, this.#placeOf(key));
    return row?.key ? row : undefined;
  }

  async list(options?: ListOptions): Promise<Listing> {
    const values = [this.keyPrefix.slice(0, -1), options?.folders === true];
    const rows = await this.#call(this.request('list', options), sql.LIST, values);
    const [{ storeTime }] = rows as [Row];
    return { objects: rows.filter(({ key }) => key), storeTime };
  }

  async epoch(options?: StoreCallOptions): Promise<string> {
    const [row] = await this.#call(this.request('examine', options), sql.TELL_EPOCH);
    return (row as Row).epoch;
  }

  async describe(options?: StoreCallOptions): Promise<readonly StoreFact[]> {
    const facts = await this.#call(this.request('examine', options), sql.DESCRIBE);
    return facts
      .filter(({ id, isPooled }) => isPooled || id !== 'pooler')
      .map(({ id, status, detail }) => ({ id: `postgres-${id}`, title: id, status, detail }));
  }

  changed(signal: AbortSignal, heed?: Heed): Promise<void> {
    return this.#listener.next(signal, heed);
  }

  protected async write(
    request: StoreRequest,
    { key, body, metadata, etag }: ConditionalWrite,
  ): Promise<WriteResult> {
    const values = [...this.#placeOf(key), randomUUID(), body, JSON.stringify(metadata), etag];
    const [row] = await this.#call(request, etag === undefined ? sql.CREATE : sql.REPLACE, values);
    if (row === undefined) return { status: 'conflict' };
    // Another statement, and one at a time: within the write it would hold up all writes of the server.
    const notice = [this.#channel, `${Buffer.byteLength(body)} ${key}`];
    this.#notified = this.#notified
      .then(() => this.#call(this.request('watch', undefined, key), sql.NOTIFY, notice))
      .catch(() => undefined);
    return { status: 'written', etag: row.etag, storeTime: row.storeTime };
  }

  protected discard(request: StoreRequest, key: string): Promise<unknown> {
    return this.#call(request, sql.DISCARD, this.#placeOf(key));
  }

  async close(): Promise<void> {
    this.#listener.end();
    await this.#notified;
    for (const { pool } of this.servers) if (!pool.ending) await pool.end();
  }

  async connect(signal: AbortSignal): Promise<PoolClient> {
    const connecting = this.#server.pool.connect();
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

  get #server(): PostgresServer {
    return this.servers[this.#current] as PostgresServer;
  }

  /** The prefix and the key of a row. Keys with slashes are those of stores below this one. */
  #placeOf(key: string): [prefix: string, key: string] {
    const path = this.keyPrefix + key;
    const slash = path.lastIndexOf('/');
    return [path.slice(0, slash), path.slice(slash + 1)];
  }

  /**
   * Makes a statement at the server that was used last, and at the others where that one is away or a replica.
   *
   * @returns no row where another write came first
   * @throws {StoreError}
   */
  #call(
    request: StoreRequest<Operation>,
    statement: string,
    values: unknown[] = [],
  ): Promise<readonly Row[]> {
    const isRead = request.operation === 'read' || request.operation === 'list';
    return withinRequestTime(this.options, request.signal, async (limit) => {
      for (let left = this.servers.length - 1; ; left -= 1) {
        const [current, doubt] = [this.#current, this.#doubt];
        try {
          if (isRead && doubt !== undefined) {
            await this.#ask(request, sql.BARRIER, [], limit);
            if (this.#doubt === doubt) this.#doubt = undefined;
          }
          return await this.#ask(request, statement, values, limit);
        } catch (error) {
          const { transient, outcome } = error as StoreError;
          if (outcome === 'unknown' && !isRead) this.#doubt = error;
          if (transient && this.#current === current) this.#current = (current + 1) % this.servers.length;
          if (!transient || outcome === 'unknown' || left === 0 || limit.aborted) throw error;
        }
      }
    });
  }

  /** Makes a statement at the current server, and the table where there is none. */
  async #ask(
    request: StoreRequest<Operation>,
    statement: string,
    values: unknown[],
    limit: AbortSignal,
  ): Promise<readonly Row[]> {
    const { address } = this.#server;
    let isSent = false;
    let client: PoolClient | undefined;
    let warning: unknown;
    const onNotice = (notice: unknown) => {
      if (fieldOf(notice, 'routine') === SYNCHRONOUS_WAIT) warning = notice;
    };
    try {
      client = await this.connect(limit);
      client.on('notice', onNotice);
      isSent = true;
      const sentAt = this.clock.monotonic();
      const { rows } = await orAborted(client.query(statement, values), limit);
      const tookMs = this.clock.monotonic() - sentAt;
      if (warning !== undefined) throw warning;
      client.off('notice', onNotice);
      client.release();
      const processId = fieldOf(client, 'processID');
      // The server's time was read when the statement began, and a write may have waited since.
      return rows.map(({ now, age, ...row }) => ({
        ...row,
        age: { min: age ?? 0, max: age ?? Number.POSITIVE_INFINITY },
        storeTime: { min: now, max: now + tookMs },
        isPooled: row.pid !== processId,
      }));
    } catch (error) {
      // A reply that comes late must not be taken for that of another statement.
      client?.release(true);
      if (classifyReply(error, request, address, isSent) === 'conflict') return [];
      await this.#ask({ ...request, operation: 'create' }, sql.CREATE_TABLE, [], limit);
      return this.#ask(request, statement, values, limit);
    }
  }
}
