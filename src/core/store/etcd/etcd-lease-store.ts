import { anySignal } from '../../base/abort.js';
import { checked, listOf, maybe, NAME, OBJECT, TEXT } from '../../base/arguments.js';
import type { Clock } from '../../base/clock.js';
import { textOf } from '../../base/fields.js';
import { type Heed, LOST_WATCH_MS } from '../changes.js';
import { storeTime } from '../http-times.js';
import type {
  HistoryOptions,
  LeaseStore,
  Listing,
  ListingPage,
  ListOptions,
  PastObject,
  StoreCallOptions,
  StoredObject,
  StoreError,
  StoreFact,
  WriteResult,
} from '../lease-store.js';
import { type ConditionalWrite, type ContinuedPage, StoreDriver } from '../store-driver.js';
import { type StoreRequest, senseless } from '../store-request.js';
import { EtcdGateway, type EtcdGatewayOptions, type EtcdReply } from './gateway.js';
import {
  ageOf,
  decodeValue,
  type EtcdKeyValue,
  encodeValue,
  endOf,
  fromBase64,
  isMark,
  markOf,
  toBase64,
} from './key-value.js';

/** Settings of an {@link EtcdLeaseStore}. */
export interface EtcdLeaseStoreOptions extends EtcdGatewayOptions {
  /** Without a slash at either end; not empty. */
  readonly prefix: string;
}

/** How many keys a request lists, with their values: those of objects and of their marks. */
const PAGE = 1_000;

/**
 * Leases in etcd: transactions that compare the creation or the modification revision of one key. Reads are
 * linearizable. The etag is the modification revision, which no two states of a key share, and the cluster's
 * id: one that is restored from a snapshot gives the later revisions again. A write whose outcome is unknown is
 * never repeated here.
 *
 * Ages are unknown until etcd has removed the mark of a write (`key-value.ts`): `observedAge` knows them
 * earlier.
 */
export class EtcdLeaseStore extends StoreDriver implements LeaseStore {
  readonly #gateway: EtcdGateway;
  readonly #clock: Clock;

  /** Nothing is sent yet. @throws {ConfigError} when what it gets into the cluster with cannot be used */
  constructor(options: EtcdLeaseStoreOptions) {
    checked(options, { url: NAME, prefix: TEXT, endpoints: listOf(TEXT), etcd: maybe(OBJECT) });
    super(options.url, options.prefix);
    this.#gateway = new EtcdGateway(options);
    this.#clock = options.clock;
  }

  async read(key: string, options?: StoreCallOptions): Promise<StoredObject | undefined> {
    const request = this.request('read', options, key);
    const range = { ...this.#range(key), range_end: this.#range(`${markOf(key)}\0`).key };
    const { rows, storeTime, body: reply } = await this.#rows(request, range);
    const row = rows.get(key);
    if (row === undefined) return undefined;
    const value = decodeValue(row.value);
    const { body, metadata } = value;
    return {
      key,
      body,
      metadata,
      etag: etagOf(request, reply, row.mod_revision),
      age: ageOf(value, rows.has(markOf(key))),
      storeTime,
    };
  }

  list(options?: ListOptions): Promise<Listing> {
    return this.allPages((from) => this.#page(from, options));
  }

  async listPage(after: string | undefined, options?: ListOptions): Promise<ListingPage> {
    for (let from = after === undefined ? after : `${after}\0`; ; ) {
      const page = await this.#page(from, options);
      if (page.objects.length > 0 || !page.more) return page;
      from = page.token;
    }
  }

  /** Without times, which etcd does not keep, back to the creation of a key or to what is compacted. */
  async *history(prefix: string, { wants, retry, ...options }: HistoryOptions): AsyncGenerator<PastObject> {
    const request = this.request('read', options);
    for (let from: string | undefined = prefix; from !== undefined; ) {
      const { objects, token }: ContinuedPage = await retry(() =>
        this.#page(from, { ...options, folders: true }),
      );
      for (const { key } of objects) {
        if (!key.startsWith(prefix)) return;
        for (let revision = wants(key) ? '0' : ''; revision; ) {
          const range = { ...this.#range(key), revision };
          const reply = await retry(() => this.#rows(request, range)).catch((error: StoreError) => {
            if (revision === '0' || error.fault !== 'rejected') throw error;
          });
          const row = reply?.rows.get(key);
          if (reply)
            yield { key, written: row && decodeValue(row.value), at: storeTime(undefined), kept: true };
          revision = row ? `${BigInt(revisionOf(request, row.mod_revision)) - 1n}` : '';
        }
      }
      from = token;
    }
  }

  /** The id of the cluster. A snapshot that is restored with another token or other addresses has another one. */
  async epoch(options?: StoreCallOptions): Promise<string> {
    const request = this.request('read', options);
    const { body } = await this.#gateway.call(request, 'kv/range', { ...this.#range(''), count_only: true });
    const id = textOf(body.header, 'cluster_id');
    if (id === undefined) throw senseless(request, 'no id of its cluster');
    return id;
  }

  /**
   * Resolves at the next change that `heed` wants, and some time after the watch was lost; rejects with
   * `signal.reason` when `signal` aborts.
   */
  async changed(signal: AbortSignal, heed: Heed = () => true): Promise<void> {
    signal.throwIfAborted();
    const ending = anySignal(signal);
    try {
      await this.#watch(ending.signal, heed);
    } catch {
      signal.throwIfAborted();
      await this.#clock.sleep(LOST_WATCH_MS, signal);
    } finally {
      ending.release();
    }
  }

  /** The version of each of the servers, and the members of the cluster. Failures are reported, and not thrown. */
  async describe(options?: StoreCallOptions): Promise<readonly StoreFact[]> {
    const request = this.request('examine', options);
    const versions = await Promise.all(
      this.#gateway.clients.map((client) =>
        this.#gateway.version(request, client).then(
          (version) => ({ isUp: true, text: `${new URL(client.server).host} ${version}` }),
          (error: Error) => ({ isUp: false, text: error.message.slice(`${this.url}: `.length) }),
        ),
      ),
    );
    const members = await this.#gateway.call(request, 'cluster/member/list', {}).then(
      ({ body }) => (Array.isArray(body.members) ? [`${body.members.length} in the cluster`] : []),
      // Newer versions report it to administrators alone.
      () => [],
    );
    return [
      {
        id: 'etcd-servers',
        status: versions.every(({ isUp }) => isUp) ? 'ok' : 'warning',
        detail: [...versions.map(({ text }) => text), ...members].join(', '),
      },
      {
        id: 'take-over',
        status: 'ok',
        detail:
          'by observed age; a task that starts when all others have died takes a lease once etcd has removed its mark, 2 to 4 s after duration and grace',
      },
    ];
  }

  protected discard(request: StoreRequest, key: string): Promise<unknown> {
    return this.#gateway.call(request, 'kv/deleterange', this.#range(key));
  }

  async close(): Promise<void> {
    this.#gateway.close();
  }

  /** The keys of a range with their values. */
  async #rows(request: StoreRequest, range: object) {
    const reply = await this.#gateway.call(request, 'kv/range', range);
    const kvs: readonly EtcdKeyValue[] = Array.isArray(reply.body.kvs) ? reply.body.kvs : [];
    return { ...reply, rows: new Map(kvs.map((row) => [this.#keyOf(row), row])) };
  }

  /** The page from the key `from` on; its token is the key where the next one begins. */
  async #page(from = '', options: ListOptions | undefined): Promise<ContinuedPage> {
    const request = this.request('list', options);
    const range = { ...this.#range(from), range_end: toBase64(endOf(this.keyPrefix)), limit: String(PAGE) };
    const { rows, body, storeTime } = await this.#rows(request, range);
    const last = body.more === true ? [...rows.keys()].at(-1) : undefined;
    const objects = [...rows]
      // Deeper keys belong to other stores, such as those of locks.
      .filter(([key]) => (options?.folders || !key.includes('/')) && !isMark(key))
      .map(([key, row]) => {
        const value = decodeValue(row.value);
        // The mark of the last object of a page would be on the next one.
        const age = ageOf(value, rows.has(markOf(key)) || key === last);
        return {
          key,
          etag: etagOf(request, body, row.mod_revision),
          size: Buffer.byteLength(value.body),
          age,
        };
      });
    if (last === undefined) return { objects, storeTime, more: false, token: undefined };
    const [folder, deeper] = last.split('/');
    const token = deeper === undefined || options?.folders ? `${last}\0` : endOf(`${folder}/`);
    return { objects, storeTime, more: true, token };
  }

  protected async write(
    request: StoreRequest,
    { key: name, body, metadata, etag }: ConditionalWrite,
  ): Promise<WriteResult> {
    const [revision = ''] = etag?.split('@') ?? [];
    if (etag !== undefined && !isRevision(revision)) {
      // No key has such an etag. A comparison with zero would ask whether the key is absent.
      request.signal?.throwIfAborted();
      return { status: 'conflict' };
    }
    const condition =
      etag === undefined
        ? { target: 'CREATE', create_revision: '0' }
        : { target: 'MOD', mod_revision: revision };
    const { key } = this.#range(name);
    const { expiresAfterMs } = request;
    const puts: object[] = [{ request_put: { key, value: encodeValue(body, metadata, expiresAfterMs) } }];
    if (expiresAfterMs !== undefined) {
      const lease = await this.#gateway.grantMark(request, expiresAfterMs);
      puts.push({ request_put: { ...this.#range(markOf(name)), lease } });
    }
    const transaction = { compare: [{ key, result: 'EQUAL', ...condition }], success: puts };
    const reply = await this.#gateway.call(request, 'kv/txn', transaction);
    if (reply.body.succeeded !== true) return { status: 'conflict' };
    return {
      status: 'written',
      etag: etagOf(request, reply.body, String(reply.revision)),
      storeTime: reply.storeTime,
    };
  }

  async #watch(signal: AbortSignal, heed: Heed) {
    const { revision } = this.#gateway;
    // What changed since the last reply was not in it. Without one, the watch begins when it begins.
    const start = revision === 0n ? {} : { start_revision: String(revision + 1n) };
    const range = { key: toBase64(this.keyPrefix), range_end: toBase64(endOf(this.keyPrefix)), ...start };
    for await (const { type, kv = {} } of this.#gateway.watch(this.request('watch', { signal }), range)) {
      const key = this.#keyOf(kv);
      const size = type === 'DELETE' ? undefined : Buffer.byteLength(decodeValue(kv.value).body);
      if (!key.includes('/') && !isMark(key) && heed({ key, size })) return;
    }
    // It was cancelled. Another server may know more.
    this.#gateway.leave();
    throw new Error('the watch was lost');
  }

  #range(key: string): { readonly key: string } {
    return { key: toBase64(this.keyPrefix + key) };
  }

  #keyOf({ key }: EtcdKeyValue): string {
    return fromBase64(key).slice(this.keyPrefix.length);
  }
}

function etagOf(request: StoreRequest, { header }: EtcdReply['body'], revision?: string): string {
  return `${revisionOf(request, revision)}@${textOf(header, 'cluster_id')}`;
}

function revisionOf(request: StoreRequest, revision = ''): string {
  if (isRevision(revision)) return revision;
  throw senseless(request, 'no revision: is this etcd?');
}

function isRevision(text: string): boolean {
  return /^[1-9]\d{0,18}$/.test(text);
}
