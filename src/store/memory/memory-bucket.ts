import { createHash } from 'node:crypto';
import type { Clock } from '../../clock.js';
import { Changes } from '../changes.js';
import type { Interval, Listing, StoredObject, WriteResult } from '../lease-store.js';

interface MemoryObject {
  readonly body: string;
  readonly metadata: Readonly<Record<string, string>>;
  readonly etag: string;
  /** Bytes of the body. */
  readonly size: number;
  /** The bucket's monotonic clock at the write, cut to its resolution. */
  readonly writtenAt: number;
}

/**
 * The server's side of {@link MemoryLeaseStore}: objects, conditions and a clock. Every operation is one synchronous step, so it
 * is atomic, and happens exactly when it is called.
 *
 * By default an etag is the MD5 of the body, like that of a single-part S3 object: a body that comes back brings its etag back with it.
 */
export class MemoryBucket {
  /** Told of every write and removal that was applied. */
  readonly changes = new Changes();
  readonly #objects = new Map<string, MemoryObject>();
  /** The objects in the order of their keys, until one of them changes. */
  #sorted: [key: string, object: MemoryObject][] | undefined;
  readonly #clock: Clock;
  /**
   * @param clock the clock of the store, which need not be that of its clients
   * @param resolutionMs what its times are cut to, in milliseconds; 0 for exact times
   * @param etagOf makes a body's etag; the same one whenever the same body is given
   */
  constructor(
    clock: Clock,
    readonly resolutionMs: number,
    private readonly etagOf: (body: string) => string = md5,
  ) {
    this.#clock = clock;
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
    this.#sorted ??= [...this.#objects].sort(([a], [b]) => (a < b ? -1 : 1));
    const objects = this.#sorted.map(([key, object]) => ({ key, etag: object.etag, size: object.size, age: this.#ageOf(object) }));
    return { objects, storeTime: this.#now() };
  }

  /** Writes if there is none of that key. */
  create(key: string, body: string, metadata: Readonly<Record<string, string>>): WriteResult {
    return this.#objects.has(key) ? { status: 'conflict' } : this.#write(key, body, metadata);
  }

  /** Writes if the etag is that of the object. */
  replace(key: string, body: string, metadata: Readonly<Record<string, string>>, etag: string): WriteResult {
    return this.#objects.get(key)?.etag === etag ? this.#write(key, body, metadata) : { status: 'conflict' };
  }

  /** Removes the object, if there is one. */
  remove(key: string): void {
    if (!this.#objects.delete(key)) return;
    this.#sorted = undefined;
    this.changes.announce();
  }

  #write(key: string, body: string, metadata: Readonly<Record<string, string>>): WriteResult {
    const etag = this.etagOf(body);
    const size = Buffer.byteLength(body);
    this.#objects.set(key, { body, metadata: { ...metadata }, etag, size, writtenAt: this.#cut(this.#clock.monotonic()) });
    this.#sorted = undefined;
    this.changes.announce();
    return { status: 'written', etag, storeTime: this.#now() };
  }

  #ageOf({ writtenAt }: MemoryObject): Interval {
    // Both ends are cut, so the difference is off by less than one step either way.
    const age = this.#cut(this.#clock.monotonic()) - writtenAt;
    return { min: Math.max(0, age - this.resolutionMs), max: age + this.resolutionMs };
  }

  #now(): Interval {
    const now = this.#cut(this.#clock.now());
    return { min: now, max: now + this.resolutionMs };
  }

  #cut(time: number): number {
    return this.resolutionMs === 0 ? time : Math.floor(time / this.resolutionMs) * this.resolutionMs;
  }
}

function md5(body: string): string {
  return createHash('md5').update(body).digest('hex');
}
