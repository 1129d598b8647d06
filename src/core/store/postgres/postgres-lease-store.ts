import { createHash, randomUUID } from 'node:crypto';
import { orAborted } from '../../base/abort.js';
import { checked, listOf, NAME, OBJECT } from '../../base/arguments.js';
import type { Clock } from '../../base/clock.js';
import type { Heed } from '../changes.js';
import { storeTime } from '../http-times.js';
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
import { type ConditionalWrite, StoreDriver } from '../store-driver.js';
import { type Operation, type StoreRequest, withinRequestTime } from '../store-request.js';
import { ChangeListener } from './change-listener.js';
import { classifyReply, type Exchange } from './classify-reply.js';
import { describeServer, type ServerRow } from './describe-server.js';
import {
  connected,
  type PostgresClient,
  type PostgresServer,
  type ServerMessage,
} from './postgres-server.js';
import {
  BARRIER,
  CREATE,
  CREATE_TABLE,
  DESCRIBE,
  DISCARD,
  LIST,
  NOTIFY,
  READ,
  REPLACE,
} from './statements.js';

/** Settings of a {@link PostgresLeaseStore}. */
export interface PostgresLeaseStoreOptions {
  /** The store as its user wrote it: `postgres://USER@HOST:5432/DB/prefix`. */
  readonly url: string;
  /** Without a slash at either end; not empty. */
  readonly prefix: string;
  /** The servers of one cluster, at least one. */
  readonly servers: readonly PostgresServer[];
  readonly clock: Clock;
  /** How long one call may take in all, in milliseconds. */
  readonly requestTimeoutMs: number;
}

/** A row of an answer. Each statement returns a part of it. */
type Row = StoredObject & ListedObject & ServerRow;

/** What `pg` makes of an answer. Times are in milliseconds. */
interface Result {
  readonly rows: readonly (Row & Record<'now' | 'min' | 'max' | 'pid', number>)[];
}

/** The function of the server that warns of a commit whose wait for a synchronous standby was cancelled. */
const SYNCHRONOUS_WAIT = 'SyncRepWaitForLSN';

/**
 * Leases in the table `nodelease` of PostgreSQL, a row each. Each call is one statement, and repeats none whose
 * outcome is unknown. Etags are random: a counter would come again after a promotion that lost writes.
 *
 * Ages are those by the server's clock. Those of rows of another epoch are unknown: `observedAge` knows them.
 */
export class PostgresLeaseStore extends StoreDriver implements LeaseStore {
  override readonly timeStepMs = 0;
  readonly #listener: ChangeListener;
  /** Resolves after the last notification. */
  #notified: Promise<unknown> = Promise.resolve();
  #current = 0;
  /**
   * The failure of a write that may be applied, and be missing at a synchronous standby. What a read shows proves
   * nothing before that standby has it.
   */
  #doubt: unknown;
  #closing: Promise<void> | undefined;

  /** Nothing is sent yet. */
  constructor(private readonly options: PostgresLeaseStoreOptions) {
    const { url, prefix, clock } = checked(options, { url: NAME, prefix: NAME, servers: listOf(OBJECT) });
    super(url, prefix);
    this.#listener = new ChangeListener({
      channel: channelOf(prefix),
      clock,
      connect: (signal) => connected(this.#server, signal),
      list: (signal) => this.list({ signal }),
    });
  }

  async read(key: string, options?: StoreCallOptions): Promise<StoredObject | undefined> {
    const [row] = (await this.#call(this.request('read', options, key), READ, this.#placeOf(key))) ?? [];
    return row?.key ? row : undefined;
  }

  async list(options?: ListOptions): Promise<Listing> {
    const values = [this.keyPrefix.slice(0, -1), options?.folders === true];
    const rows = (await this.#call(this.request('list', options), LIST, values)) ?? [];
    const [first] = rows;
    return {
      objects: rows.filter(({ key }) => key),
      storeTime: first?.storeTime ?? storeTime(undefined),
      epoch: first?.epoch,
    };
  }

  changed(signal: AbortSignal, heed?: Heed): Promise<void> {
    return this.#listener.next(signal, heed);
  }

  async describe(options?: StoreCallOptions): Promise<readonly StoreFact[]> {
    return (await this.#call(this.request('examine', options), DESCRIBE))?.flatMap(describeServer) ?? [];
  }

  protected async write(
    request: StoreRequest,
    { key, body, metadata, etag }: ConditionalWrite,
  ): Promise<WriteResult> {
    const place = this.#placeOf(key);
    const values = [...place, randomUUID(), body, JSON.stringify(metadata)];
    const write = () =>
      etag === undefined
        ? this.#call(request, CREATE, values)
        : this.#call(request, REPLACE, [...values, etag]);
    let rows = await write();
    if (rows === undefined) {
      await this.#call(request, CREATE_TABLE);
      rows = await write();
    }
    const [row] = rows ?? [];
    if (row === undefined) return { status: 'conflict' };
    // Another statement, and one at a time: within the write it would hold up all writes of the server.
    const notice = [channelOf(place[0]), `${Buffer.byteLength(body)} ${place[1]}`];
    this.#notified = this.#notified
      .then(() => this.#call(this.request('watch', undefined, key), NOTIFY, notice))
      .catch(() => undefined);
    return { status: 'written', etag: row.etag, storeTime: row.storeTime, epoch: row.epoch };
  }

  protected discard(request: StoreRequest, key: string): Promise<unknown> {
    return this.#call(request, DISCARD, this.#placeOf(key));
  }

  close(): Promise<void> {
    this.#closing ??= this.#notified.then(async () => {
      this.#listener.end();
      for (const { pool } of this.options.servers) await pool.end();
    });
    return this.#closing;
  }

  get #server(): PostgresServer {
    return this.options.servers[this.#current] as PostgresServer;
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
   * @returns no row where another write came first; undefined where there is no table
   * @throws {StoreError}
   */
  #call(
    request: StoreRequest<Operation>,
    sql: string,
    values: unknown[] = [],
  ): Promise<readonly Row[] | undefined> {
    const { servers } = this.options;
    const isRead = sql === READ || sql === LIST;
    return withinRequestTime(this.options, request.signal, async (limit) => {
      for (let left = servers.length - 1; ; left -= 1) {
        const [current, doubt] = [this.#current, this.#doubt];
        try {
          if (isRead && doubt !== undefined) {
            await this.#ask(request, BARRIER, [], limit);
            if (this.#doubt === doubt) this.#doubt = undefined;
          }
          const rows = await this.#ask(request, sql, values, limit);
          // A replica that lags behind may have no table, and refuses this.
          if (rows === undefined && isRead) await this.#ask(request, DESCRIBE, [], limit);
          return rows;
        } catch (error) {
          const { transient, outcome } = error as StoreError;
          if (outcome === 'unknown' && !isRead) this.#doubt = error;
          if (transient && this.#current === current) this.#current = (current + 1) % servers.length;
          if (!transient || outcome === 'unknown' || left === 0 || limit.aborted) throw error;
        }
      }
    });
  }

  /** Makes a statement at the current server. */
  async #ask(
    request: StoreRequest<Operation>,
    sql: string,
    values: unknown[],
    limit: AbortSignal,
  ): Promise<readonly Row[] | undefined> {
    const { clock } = this.options;
    const { address: server } = this.#server;
    const exchange: Exchange = { request, server, sent: false };
    let client: PostgresClient | undefined;
    let warning: ServerMessage | undefined;
    const onNotice = (notice: ServerMessage) => {
      if (notice.routine === SYNCHRONOUS_WAIT) warning = notice;
    };
    try {
      client = await connected(this.#server, limit);
      client.on('notice', onNotice);
      exchange.sent = true;
      const sentAt = clock.monotonic();
      const { rows } = (await orAborted(client.query(sql, values), limit)) as Result;
      const tookMs = clock.monotonic() - sentAt;
      if (warning !== undefined) throw warning;
      client.off('notice', onNotice);
      client.release();
      // The server's time was read when the statement began, and a write may have waited since.
      return rows.map(({ now, min, max, ...row }) => ({
        ...row,
        age: { min, max },
        storeTime: { min: now, max: now + tookMs },
        server,
        isPooled: row.pid !== client?.processID,
      }));
    } catch (error) {
      // A reply that comes late must not be taken for that of another statement.
      client?.release(true);
      return classifyReply(error, exchange) === 'conflict' ? [] : undefined;
    }
  }
}

/** At most 63 bytes, as an identifier. */
function channelOf(prefix: string): string {
  return `nodelease:${createHash('sha256').update(prefix).digest('hex').slice(0, 40)}`;
}
