import { onAbort } from '../base/abort.js';
import type { Clock } from '../base/clock.js';
import type {
  Interval,
  LeaseStore,
  Listing,
  ListingPage,
  ObjectChange,
  ObjectMetadata,
  StoreCallOptions,
  StoredObject,
  WriteOptions,
  WriteResult,
} from './lease-store.js';
import { checkScratch, type Operation, type StoreRequest, senseless } from './store-request.js';

/** The settings that all object stores have. */
export interface ObjectStoreOptions {
  /** Without a slash at either end; empty for the whole bucket or container. */
  readonly prefix: string;
  readonly clock: Clock;
  /**
   * The time limit of one request, in milliseconds, including credentials and the body of the reply. A
   * listing makes one request per page.
   */
  readonly requestTimeoutMs: number;
  /** The server, where the user has named one. */
  readonly endpoint?: string | undefined;
}

/** The content of a conditional write. */
export interface ConditionalWrite extends Pick<StoredObject, 'key' | 'body' | 'metadata'> {
  /** The etag that the object must have; undefined if the object must be absent. */
  readonly etag?: string;
}

/** A page of a listing, and the token that continues it. */
export interface ContinuedPage extends ListingPage {
  readonly token: string | undefined;
}

/** A row of an object store's listing. */
interface Row {
  /** With the prefix. */
  readonly name: string | undefined;
  readonly etag: string;
  readonly size: number | undefined;
  readonly modified: Date | undefined;
}

/** What the drivers share: the properties of a remote store, and one method for both conditional writes. */
export abstract class StoreDriver implements Omit<LeaseStore, 'read' | 'list' | 'close'> {
  readonly remote: boolean = true;
  readonly timeStepMs: number = 1_000;
  protected readonly keyPrefix: string;

  /** @param url as its user wrote it */
  constructor(
    readonly url: string,
    prefix: string,
    private readonly endpoint?: string,
  ) {
    this.keyPrefix = prefix === '' ? '' : `${prefix}/`;
  }

  create(key: string, body: string, metadata: ObjectMetadata, options?: WriteOptions): Promise<WriteResult> {
    return this.write(this.request('create', options, key), { key, body, metadata });
  }

  replace(
    key: string,
    body: string,
    metadata: ObjectMetadata,
    etag: string,
    options?: WriteOptions,
  ): Promise<WriteResult> {
    return this.write(this.request('replace', options, key), { key, body, metadata, etag });
  }

  async discardProbe(key: string, options?: StoreCallOptions): Promise<void> {
    checkScratch(this.url, key);
    await this.discard(this.request('discard', options, key), key);
  }

  protected request<Of extends Operation>(
    operation: Of,
    options: WriteOptions | undefined,
    key?: string,
  ): StoreRequest<Of> {
    return { ...options, operation, url: this.url, key, endpoint: this.endpoint };
  }

  /**
   * A page of an object store's listing.
   * @param date the `Date` header of the reply
   */
  protected pageOf(date: string | undefined, rows: readonly Row[], token: string | undefined): ContinuedPage {
    const objects = rows.flatMap(({ name, etag, size = 0, modified }) => {
      const key = name?.startsWith(this.keyPrefix) ? name.slice(this.keyPrefix.length) : '';
      // Consoles mark a folder by an object whose name is the prefix itself.
      return key === '' ? [] : [{ key, etag, size, age: ageFromListing(date, modified) }];
    });
    return { objects, storeTime: storeTime(date), more: token !== undefined, token };
  }

  /**
   * All pages of a listing as one.
   * @throws {StoreError} when the listing cannot be continued, and those of `page`
   */
  protected async allPages(page: (token: string | undefined) => Promise<ContinuedPage>): Promise<Listing> {
    const pages: ListingPage[] = [];
    for (let token: string | undefined; ; ) {
      const next = await page(token);
      pages.push(next);
      if (!next.more) break;
      // A server that repeats the same page would keep this loop for ever.
      if (next.token === undefined || next.token === token)
        throw senseless(this.request('list', undefined), 'a listing that cannot be continued');
      token = next.token;
    }
    // Each page was true at its own time.
    const times = pages.map((each) => each.storeTime);
    const min = Math.min(...times.map((time) => time.min));
    return {
      objects: pages.flatMap(({ objects }) => objects),
      storeTime: { min, max: times.at(-1)?.max ?? Number.POSITIVE_INFINITY },
    };
  }

  protected abstract write(request: StoreRequest, content: ConditionalWrite): Promise<WriteResult>;

  /** Removes an object, if there is one. */
  protected abstract discard(request: StoreRequest, key: string): Promise<unknown>;
}

/**
 * HTTP dates are cut to whole seconds: the true time is up to this much later, in milliseconds, their finest
 * unit.
 */
const CUT_MS = 999;

/** A difference of clocks that every server accepts, in milliseconds; they refuse from some minutes on. */
const HARMLESS_SKEW_MS = 60_000;

/**
 * The time in an HTTP date (RFC 9110, 5.6.7), in milliseconds since the Unix epoch; NaN for anything else.
 * `Date.parse` alone would also take dates without a zone, as local time, and so invent an age.
 */
export function parseHttpDate(header = ''): number {
  const isHttpDate = /^[A-Z][a-z]{2}, \d{2} [A-Z][a-z]{2} \d{4} \d{2}:\d{2}:\d{2} GMT$/.test(header);
  return isHttpDate ? Date.parse(header) : Number.NaN;
}

/**
 * The server's time when it formed a reply, from its `Date` header, in milliseconds since the Unix epoch.
 * Unbounded if the header is missing.
 */
export function storeTime(dateHeader: string | undefined): Interval {
  const date = parseHttpDate(dateHeader);
  return Number.isNaN(date)
    ? { min: Number.NEGATIVE_INFINITY, max: Number.POSITIVE_INFINITY }
    : { min: date, max: date + CUT_MS };
}

/**
 * Whether a time that this host has used is far from the server's, by the `Date` header of its reply. False
 * if one of them is unknown.
 * @param used NaN if it is unknown
 */
export function isClockWrong(dateHeader: string | undefined, used: number): boolean {
  return Math.abs(parseHttpDate(dateHeader) - used) > HARMLESS_SKEW_MS;
}

/**
 * How old an object was when a reply was formed, from the `Date` and `Last-Modified` headers of that same
 * reply, in milliseconds. Both are cut to whole seconds, so their difference is off by less than one second
 * either way. Unknown is `{ min: 0, max: Infinity }`.
 */
export function ageFromHeaders(
  dateHeader: string | undefined,
  lastModifiedHeader: string | undefined,
): Interval {
  return ageBetween(parseHttpDate(lastModifiedHeader), dateHeader, CUT_MS);
}

/**
 * How old a listed object was when the page was formed. Some servers list milliseconds, others whole seconds
 * written as `.000`: a time without a fraction is taken as cut.
 */
export function ageFromListing(dateHeader: string | undefined, lastModified: Date | undefined): Interval {
  const modified = lastModified?.getTime() ?? Number.NaN;
  return ageBetween(modified, dateHeader, modified % 1000 === 0 ? CUT_MS : 0);
}

function ageBetween(modified: number, dateHeader: string | undefined, modifiedCut: number): Interval {
  const age = parseHttpDate(dateHeader) - modified;
  if (Number.isNaN(age)) return { min: 0, max: Number.POSITIVE_INFINITY };
  // A server whose times contradict each other (written after it was read) has reported nothing that a
  // take-over could rest on: min is 0.
  return { min: Math.max(0, age - modifiedCut), max: Math.max(CUT_MS, age + CUT_MS) };
}

/** What a waiting task is to be woken for: true for a change that is of interest. */
export type Heed = (change: ObjectChange) => boolean;

/** The tasks that wait for the next change of some object. Serves `LeaseStore.changed`. */
export class Changes {
  readonly #waiting = new Set<(change?: ObjectChange) => void>();

  /** How many wait at this moment. */
  get waiting(): number {
    return this.#waiting.size;
  }

  /** Notifies all waiting tasks of a change, and wakes the ones that want it; without a change, wakes all. */
  announce(change?: ObjectChange): void {
    for (const notify of this.#waiting) notify(change);
  }

  /**
   * Resolves at the next `announce()` that `heed` wants, at any without it; rejects with `signal.reason` when
   * `signal` aborts, and with what `heed` throws. Keeps no listener.
   */
  next(signal: AbortSignal, heed: Heed = () => true): Promise<void> {
    return new Promise((resolve, reject) => {
      if (signal.aborted) return reject(signal.reason);
      const end = (settle: () => void) => {
        this.#waiting.delete(notify);
        cancel();
        settle();
      };
      const notify = (change?: ObjectChange) => {
        try {
          if (change === undefined || heed(change)) end(resolve);
        } catch (error) {
          // No concern of the other waiting tasks, nor of the writer.
          end(() => reject(error));
        }
      };
      this.#waiting.add(notify);
      const cancel = onAbort(signal, () => end(() => reject(signal.reason)));
    });
  }
}
