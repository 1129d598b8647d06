import { createHash } from 'node:crypto';
import { checkArguments, FUNCTION } from '../../base/arguments.js';
import type { Clock } from '../../base/clock.js';
import { Changes } from '../changes.js';
import type {
  Interval,
  ListedObject,
  Listing,
  ListingPage,
  ObjectMetadata,
  StoredObject,
  WriteResult,
} from '../lease-store.js';

interface MemoryObject extends Pick<StoredObject, 'body' | 'metadata' | 'etag'>, Pick<ListedObject, 'size'> {
  /** The bucket's monotonic clock at the write, cut to its resolution. */
  readonly writtenAt: number;
}

/**
 * The server's side of {@link MemoryLeaseStore}: objects, conditions and a clock. Every operation is one
 * synchronous step, so it is atomic, and happens exactly when it is called.
 *
 * By default an etag is the MD5 of the body, like that of a single-part S3 object: a body that comes back
 * brings its etag back with it.
 */
export class MemoryBucket {
  /** Notified of every write and removal that was applied. */
  readonly changes = new Changes();
  readonly #objects = new Map<string, MemoryObject>();
  /** The keys in order, until there is another one or one less. */
  #sorted: readonly string[] | undefined;

  /**
   * @param clock the clock of the store, which need not be that of its clients
   * @param resolutionMs what its times are cut to, in milliseconds; 0 for exact times
   * @param etagOf makes a body's etag; the same one for the same body
   */
  constructor(
    private readonly clock: Clock,
    readonly resolutionMs: number,
    private readonly etagOf: (body: string) => string = md5,
  ) {
    checkArguments({ clock, resolutionMs, etagOf }, { etagOf: FUNCTION });
  }

  /** The object, or undefined. */
  read(key: string): StoredObject | undefined {
    const object = this.#objects.get(key);
    if (object === undefined) return undefined;
    const { body, metadata, etag } = object;
    return { key, body, metadata, etag, age: this.#ageOf(object), storeTime: this.#now() };
  }

  /** All objects, in the order of their keys. */
  list(): Listing {
    return { objects: this.#keys().map((key) => this.#row(key)), storeTime: this.#now() };
  }

  /**
   * The objects with keys greater than `after`, in order, at most `most` of them; without `after`, from the
   * first.
   */
  page(after: string | undefined, most: number): ListingPage {
    const keys = this.#keys();
    const rest = after === undefined ? keys : keys.filter((key) => key > after);
    const objects = rest.slice(0, most).map((key) => this.#row(key));
    return { objects, storeTime: this.#now(), more: rest.length > most };
  }

  /** Writes if there is no object of that key. */
  create(key: string, body: string, metadata: ObjectMetadata): WriteResult {
    return this.#objects.has(key) ? { status: 'conflict' } : this.#write(key, body, metadata);
  }

  /** Writes if the etag is that of the object. */
  replace(key: string, body: string, metadata: ObjectMetadata, etag: string): WriteResult {
    return this.#objects.get(key)?.etag === etag ? this.#write(key, body, metadata) : { status: 'conflict' };
  }

  /** Removes the object, if there is one. */
  remove(key: string): void {
    if (!this.#objects.delete(key)) return;
    this.#sorted = undefined;
    this.changes.announce({ key, size: undefined });
  }

  #write(key: string, body: string, metadata: ObjectMetadata): WriteResult {
    const etag = this.etagOf(body);
    const size = Buffer.byteLength(body);
    const writtenAt = this.#cut(this.clock.monotonic());
    if (!this.#objects.has(key)) this.#sorted = undefined;
    this.#objects.set(key, { body, metadata: { ...metadata }, etag, size, writtenAt });
    this.changes.announce({ key, size });
    return { status: 'written', etag, storeTime: this.#now() };
  }

  #keys(): readonly string[] {
    this.#sorted ??= [...this.#objects.keys()].sort();
    return this.#sorted;
  }

  #row(key: string): ListedObject {
    const object = this.#objects.get(key) as MemoryObject;
    return { key, etag: object.etag, size: object.size, age: this.#ageOf(object) };
  }

  #ageOf({ writtenAt }: MemoryObject): Interval {
    // Both ends are cut, so the difference is off by less than one step either way.
    const age = this.#cut(this.clock.monotonic()) - writtenAt;
    return { min: Math.max(0, age - this.resolutionMs), max: age + this.resolutionMs };
  }

  #now(): Interval {
    const now = this.#cut(this.clock.now());
    return { min: now, max: now + this.resolutionMs };
  }

  #cut(time: number): number {
    return this.resolutionMs === 0 ? time : Math.floor(time / this.resolutionMs) * this.resolutionMs;
  }
}

function md5(body: string): string {
  return createHash('md5').update(body).digest('hex');
}
