import { anySignal } from '../../base/abort.js';
import type { Heed } from '../changes.js';
import type {
  LeaseStore,
  Listing,
  ListingPage,
  ObjectMetadata,
  StoreCallOptions,
  StoredObject,
  StoreFact,
  WriteOptions,
  WriteResult,
} from '../lease-store.js';
import { StoreError } from '../lease-store.js';
import { ageOf, grantMark, isMark, markOf } from './age-marks.js';
import { type EtcdRequest, senseless } from './classify-reply.js';
import { describeServers } from './describe-servers.js';
import { EtcdGateway, type EtcdGatewayOptions } from './gateway.js';
import { decodeValue, type EtcdKeyValue, encodeValue, endOf, fromBase64, toBase64 } from './key-value.js';
import { watchEvents } from './watch-events.js';

/** Settings of an {@link EtcdLeaseStore}. */
export interface EtcdLeaseStoreOptions extends EtcdGatewayOptions {
  /** The store as its user wrote it: `etcd://HOST:2379/prefix`. */
  readonly url: string;
  /** Without a slash at either end; not empty. */
  readonly prefix: string;
  /** See {@link LeaseStore.pollMs}, in milliseconds. @default 1200 */
  readonly pollMs?: number | undefined;
}

/** How many keys a request lists, with their values: those of objects and of their marks. */
const PAGE = 1_000;

/**
 * Leases in etcd: transactions that compare the creation or the modification revision of one key. Reads are
 * linearizable. The etag is the modification revision, which no two states of a key share. A write whose
 * outcome is unknown is never repeated here.
 *
 * Ages are unknown until etcd has removed the mark of a write (`age-marks.ts`): `observedAge` tells them
 * earlier.
 */
export class EtcdLeaseStore implements LeaseStore {
  readonly url: string;
  readonly remote = true;
  readonly pollMs: number;
  readonly timeStepMs = 1_000;
  readonly #gateway: EtcdGateway;
  readonly #keyPrefix: string;

  constructor(private readonly options: EtcdLeaseStoreOptions) {
    const { url, prefix, pollMs = 1_200 } = options;
    this.url = url;
    this.pollMs = pollMs;
    this.#keyPrefix = `${prefix}/`;
    this.#gateway = new EtcdGateway(options);
  }

  async read(key: string, options?: StoreCallOptions): Promise<StoredObject | undefined> {
    const request = this.#request('read', key);
    const range = { ...this.#range(key), range_end: this.#range(`${markOf(key)}\0`).key };
    const { body: reply, storeTime } = await this.#gateway.call(request, 'kv/range', range, {
      ...options,
      repeatable: true,
    });
    const rows = new Map(keyValuesOf(reply).map((row) => [this.#keyOf(row), row]));
    const row = rows.get(key);
    if (row === undefined) return undefined;
    const value = decodeValue(row.value);
    const { body, metadata } = value;
    return {
      key,
      body,
      metadata,
      etag: etagOf(request, row.mod_revision),
      age: ageOf(value, rows.has(markOf(key))),
      storeTime,
    };
  }

  async list(options?: StoreCallOptions): Promise<Listing> {
    const pages: ListingPage[] = [];
    for (let from: string | undefined = ''; from !== undefined; ) {
      const page = await this.#page(from, options);
      pages.push(page);
      from = page.next;
    }
    // Each page was true at its own time.
    const min = Math.min(...pages.map(({ storeTime }) => storeTime.min));
    const max = pages.at(-1)?.storeTime.max ?? Number.POSITIVE_INFINITY;
    return { objects: pages.flatMap(({ objects }) => objects), storeTime: { min, max } };
  }

  async listPage(after: string | undefined, options?: StoreCallOptions): Promise<ListingPage> {
    for (let from = after === undefined ? '' : `${after}\0`; ; ) {
      const { next, ...page } = await this.#page(from, options);
      if (page.objects.length > 0 || next === undefined) return page;
      from = next;
    }
  }

  create(key: string, body: string, metadata: ObjectMetadata, options?: WriteOptions): Promise<WriteResult> {
    return this.#write(
      'create',
      key,
      { target: 'CREATE', create_revision: '0' },
      { body, metadata },
      options,
    );
  }

  async replace(
    key: string,
    body: string,
    metadata: ObjectMetadata,
    etag: string,
    options?: WriteOptions,
  ): Promise<WriteResult> {
    options?.signal?.throwIfAborted();
    // No key has another one. To compare with zero would be to ask whether the key is absent.
    if (!/^[1-9]\d{0,18}$/.test(etag)) return { status: 'conflict' };
    return this.#write('replace', key, { target: 'MOD', mod_revision: etag }, { body, metadata }, options);
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
      // A server that refuses watches is not asked all the time.
      await this.options.clock.sleep(this.pollMs, signal);
    } finally {
      ending.release();
    }
  }

  describe(options?: StoreCallOptions): Promise<readonly StoreFact[]> {
    return describeServers(this.#gateway, this.#request('examine'), this.options, options);
  }

  async discardProbe(key: string, options?: StoreCallOptions): Promise<void> {
    if (!key.startsWith('probe-')) {
      throw new StoreError(`${this.url}: ${key} is not a scratch object and is not removed`, {
        fault: 'rejected',
        outcome: 'not-applied',
      });
    }
    // No harm is done where it is removed twice.
    await this.#gateway.call(this.#request('discard', key), 'kv/deleterange', this.#range(key), {
      ...options,
      repeatable: true,
    });
  }

  async close(): Promise<void> {
    this.#gateway.close();
  }

  async #page(
    from: string,
    options: StoreCallOptions | undefined,
  ): Promise<ListingPage & { readonly next: string | undefined }> {
    const request = this.#request('list');
    const range = { ...this.#range(from), range_end: toBase64(endOf(this.#keyPrefix)), limit: String(PAGE) };
    const { body, storeTime } = await this.#gateway.call(request, 'kv/range', range, {
      ...options,
      repeatable: true,
    });
    const rows = new Map(keyValuesOf(body).map((row) => [this.#keyOf(row), row]));
    const last = body.more === true ? [...rows.keys()].at(-1) : undefined;
    const objects = [...rows]
      // What lies deeper belongs to other stores, such as those of locks.
      .filter(([key]) => !key.includes('/') && !isMark(key))
      .map(([key, row]) => {
        const value = decodeValue(row.value);
        // The mark of the last object of a page would be on the next one.
        const age = ageOf(value, rows.has(markOf(key)) || key === last);
        return { key, etag: etagOf(request, row.mod_revision), size: Buffer.byteLength(value.body), age };
      });
    if (last === undefined) return { objects, storeTime, more: false, next: undefined };
    const [folder, deeper] = last.split('/');
    return { objects, storeTime, more: true, next: deeper === undefined ? `${last}\0` : endOf(`${folder}/`) };
  }

  async #write(
    operation: 'create' | 'replace',
    name: string,
    condition: object,
    { body, metadata }: Pick<StoredObject, 'body' | 'metadata'>,
    options: WriteOptions = {},
  ): Promise<WriteResult> {
    const request = this.#request(operation, name);
    const { key } = this.#range(name);
    const { expiresAfterMs } = options;
    const puts: object[] = [{ request_put: { key, value: encodeValue(body, metadata, expiresAfterMs) } }];
    if (expiresAfterMs !== undefined) {
      const lease = await grantMark(this.#gateway, request, expiresAfterMs, options);
      puts.push({ request_put: { ...this.#range(markOf(name)), lease } });
    }
    const transaction = { compare: [{ key, result: 'EQUAL', ...condition }], success: puts };
    const {
      body: reply,
      revision,
      storeTime,
    } = await this.#gateway.call(request, 'kv/txn', transaction, options);
    if (reply.succeeded !== true) return { status: 'conflict' };
    return { status: 'written', etag: etagOf(request, String(revision)), storeTime };
  }

  async #watch(signal: AbortSignal, heed: Heed): Promise<void> {
    const { revision } = this.#gateway;
    // What changed since the last reply was not in it. Without one, the watch begins when it begins.
    const start = revision === 0n ? {} : { start_revision: String(revision + 1n) };
    const range = { key: toBase64(this.#keyPrefix), range_end: toBase64(endOf(this.#keyPrefix)), ...start };
    const response = await this.#gateway.stream(
      this.#request('watch'),
      'watch',
      { create_request: range },
      signal,
    );
    try {
      for await (const { type, kv = {} } of watchEvents(response)) {
        const key = this.#keyOf(kv);
        const size = type === 'DELETE' ? undefined : Buffer.byteLength(decodeValue(kv.value).body);
        if (!key.includes('/') && !isMark(key) && heed({ key, size })) return;
      }
    } finally {
      response.destroy();
    }
    // It was cancelled. Another server may know more.
    this.#gateway.leave();
    throw new Error('the watch was lost');
  }

  #request(operation: EtcdRequest['operation'], key?: string): EtcdRequest {
    return { operation, url: this.url, ...(key !== undefined && { key }) };
  }

  #range(key: string): { readonly key: string } {
    return { key: toBase64(this.#keyPrefix + key) };
  }

  #keyOf({ key }: EtcdKeyValue): string {
    return fromBase64(key).slice(this.#keyPrefix.length);
  }
}

function keyValuesOf({ kvs }: Readonly<Record<string, unknown>>): readonly EtcdKeyValue[] {
  return Array.isArray(kvs) ? kvs : [];
}

function etagOf(request: EtcdRequest, revision = ''): string {
  if (/^[1-9]\d{0,18}$/.test(revision)) return revision;
  throw senseless(request, 'no revision: is this etcd?');
}
