import { createHash, randomUUID } from 'node:crypto';
import { posix } from 'node:path';
import type { PoolClient } from 'pg';
import { orAborted } from '../../base/abort.js';
import { fieldOf, objectIn } from '../../base/fields.js';
import { Changes, type Heed, LOST_WATCH_MS } from '../changes.js';
import type {
  LeaseStore,
  Listing,
  ListOptions,
  ObjectChange,
  StoreCallOptions,
  StoredObject,
  StoreFact,
  WriteResult,
} from '../lease-store.js';
import { type ConditionalWrite, type ObjectStoreOptions, StoreDriver } from '../store-driver.js';
import type { StoreRequest } from '../store-request.js';
import type { PostgresCluster, Row } from './postgres-cluster.js';
import * as sql from './statements.js';

/**
 * Leases in the table `nodelease` of PostgreSQL, a row each. Each call is one statement, and repeats none whose
 * outcome is unknown. Etags are random: a counter would come again after a promotion that lost writes.
 *
 * Ages are those by the server's clock. Those of rows of another epoch are unknown: `observedAge` knows them.
 */
export class PostgresLeaseStore extends StoreDriver implements LeaseStore {
  override readonly timeStepMs = 0;
  readonly #changes = new Changes();
  /** Ends the connection that listens while tasks wait. */
  #listening: AbortController | undefined;
  readonly #channel: string;
  /** Resolves after the last notification. */
  #notified: Promise<unknown> = Promise.resolve();

  /** Nothing is sent yet. */
  constructor(
    url: string,
    private readonly options: ObjectStoreOptions,
    private readonly cluster: PostgresCluster,
  ) {
    super(url, options.prefix);
    // At most 63 bytes, as an identifier.
    this.#channel = `nodelease:${createHash('sha256').update(options.prefix).digest('base64url')}`;
  }

  async read(key: string, options?: StoreCallOptions): Promise<StoredObject | undefined> {
    const [row] = await this.cluster.call(this.request('read', options, key), sql.READ, this.#placeOf(key));
    return row?.key ? row : undefined;
  }

  async list(options?: ListOptions): Promise<Listing> {
    const values = [this.options.prefix, options?.folders === true];
    const rows = await this.cluster.call(this.request('list', options), sql.LIST, values);
    const [{ storeTime }] = rows as [Row];
    return { objects: rows.filter(({ key }) => key), storeTime };
  }

  async epoch(options?: StoreCallOptions): Promise<string> {
    const [row] = await this.cluster.call(this.request('examine', options), sql.READ_EPOCH);
    return (row as Row).epoch;
  }

  async describe(options?: StoreCallOptions): Promise<readonly StoreFact[]> {
    const facts = await this.cluster.call(this.request('examine', options), sql.DESCRIBE);
    return facts
      .filter(({ id, isPooled }) => isPooled || id !== 'pooler')
      .map(({ id, status, detail }) => ({ id: `postgres-${id}`, status, detail }));
  }

  /** Resolves also some time after notifications were lost. One connection listens while tasks wait. */
  async changed(signal: AbortSignal, heed?: Heed): Promise<void> {
    if (this.#changes.waiting === 0) {
      this.#listening?.abort();
      this.#listening = new AbortController();
      void this.#listen(this.#listening.signal);
    }
    try {
      await this.#changes.next(signal, heed);
    } finally {
      if (this.#changes.waiting === 0) this.#listening?.abort();
    }
  }

  protected async write(
    request: StoreRequest,
    { key, body, metadata, etag }: ConditionalWrite,
  ): Promise<WriteResult> {
    const values = [...this.#placeOf(key), randomUUID(), body, JSON.stringify(metadata), etag];
    const [row] = await this.cluster.call(request, etag === undefined ? sql.CREATE : sql.REPLACE, values);
    if (row === undefined) return { status: 'conflict' };
    // Another statement, and one at a time: within the write it would hold up all writes of the server.
    const notice = [this.#channel, JSON.stringify({ key, size: Buffer.byteLength(body) })];
    this.#notified = this.#notified
      .then(() => this.cluster.call(this.request('watch', undefined, key), sql.NOTIFY, notice))
      .catch(() => undefined);
    return { status: 'written', etag: row.etag, storeTime: row.storeTime };
  }

  protected discard(request: StoreRequest, key: string): Promise<unknown> {
    return this.cluster.call(request, sql.DISCARD, this.#placeOf(key));
  }

  async close(): Promise<void> {
    this.#listening?.abort();
    await this.#notified;
    await this.cluster.close();
  }

  async #listen(signal: AbortSignal): Promise<void> {
    const { clock } = this.options;
    const begunAt = clock.monotonic();
    let client: PoolClient | undefined;
    try {
      client = await this.cluster.connect(signal);
      const lost = new Promise<void>((end) => client?.on('end', end));
      client.on('notification', ({ payload = '' }) =>
        this.#changes.announce(objectIn(payload) as ObjectChange | undefined),
      );
      const { rows } = await orAborted(client.query('SELECT pg_backend_pid() AS pid'), signal);
      // A pooler shows another process, and passes no notification on.
      if (rows[0].pid === fieldOf(client, 'processID')) {
        await orAborted(client.query(`LISTEN "${this.#channel}"`), signal);
        // What changed before the server listened.
        for (const change of (await this.list({ signal })).objects)
          if (change.age.min <= clock.monotonic() - begunAt) this.#changes.announce(change);
        await orAborted(lost, signal);
      }
    } catch {
      // Whatever it was, polling continues.
    } finally {
      client?.release(true);
    }
    await clock.sleep(LOST_WATCH_MS, signal).then(
      () => this.#changes.announce(),
      () => undefined,
    );
  }

  /** The prefix and the key of a row. Keys with slashes are those of stores below this one. */
  #placeOf(key: string): [prefix: string, key: string] {
    const path = this.keyPrefix + key;
    return [posix.dirname(path), posix.basename(path)];
  }
}
