import { NodeLeaseError } from '../base/errors.js';

/** A closed range in milliseconds: the true value lies in it. */
export interface Interval {
  readonly min: number;
  readonly max: number;
}

/** What an object says of itself in addition to its body. Lower-case keys. */
export type ObjectMetadata = Readonly<Record<string, string>>;

/** One object as the store keeps it, as of one reply. */
export interface StoredObject {
  /** The key below the store's prefix, for example `7.json`. */
  readonly key: string;
  readonly body: string;
  readonly metadata: ObjectMetadata;
  /**
   * Opaque. Changes with every write whose body differs. Where ages are observed, no other state of this key
   * ever has it.
   */
  readonly etag: string;
  /**
   * How long ago, in milliseconds by the store's own clock, this very state was written. `min` is what safety
   * rests on: it is never more than the time since the writer *began* its request, and 0 when the store
   * does not know. Where `max` is infinite, the store reports no write time, and `min` is what `observedAge`
   * makes of it: it grows for as long as this process sees the state unchanged.
   */
  readonly age: Interval;
  /** The store's time when it answered, in milliseconds since the Unix epoch. */
  readonly storeTime: Interval;
}

/** One row of a listing: a hint, since it may be older than the answer to a read. */
export interface ListedObject {
  readonly key: string;
  readonly etag: string;
  /** Bytes of the body. */
  readonly size: number;
  readonly age: Interval;
}

/** Every object below the prefix, and the store's time when it answered. */
export interface Listing {
  readonly objects: readonly ListedObject[];
  readonly storeTime: Interval;
}

/** A part of a listing: as many objects as one request shows, in the order of their keys. */
export interface ListingPage extends Listing {
  /** Whether there are objects with greater keys than the last one's. */
  readonly more: boolean;
}

/** What a store reports of one change. */
export interface ObjectChange {
  readonly key: string;
  /** Bytes of the body; undefined if the object is gone. */
  readonly size: number | undefined;
}

/** One thing that a store says of its servers, for an operator. */
export interface StoreFact {
  /** Kebab case, the same in every version: doctor shows it in words. */
  readonly id: string;
  /** `fault`: leases will be damaged. */
  readonly status: 'ok' | 'warning' | 'fault';
  readonly detail: string;
  /** For how many days the store keeps what a write has replaced; infinity for ever. @default not at all */
  readonly keptDays?: number | undefined;
}

/** A state that an object had. */
export interface PastObject {
  readonly key: string;
  /** What was written; undefined where the object was absent. */
  readonly written: Pick<StoredObject, 'body' | 'metadata'> | undefined;
  /** When, by the store's clock, in milliseconds since the Unix epoch; unbounded where it keeps no times. */
  readonly at: Interval;
  /** Whether the store keeps it when it is replaced. */
  readonly kept: boolean;
}

/** Which states are read, and how. */
export interface HistoryOptions extends StoreCallOptions {
  /** Has each request made again while the store is away. */
  retry<T>(attempt: () => Promise<T>): Promise<T>;
  /** Of the other keys nothing is read. */
  wants(key: string): boolean;
}

/** What a conditional write came to, when the store said so. */
export type WriteResult =
  | { readonly status: 'written'; readonly etag: string; readonly storeTime: Interval }
  /**
   * The condition did not hold, or a concurrent write got in the way: nothing was written by this call. Read
   * again.
   */
  | { readonly status: 'conflict' };

/** What every call to a store may be given. */
export interface StoreCallOptions {
  /** Gives the call up. A write that is given up has an unknown outcome. */
  readonly signal?: AbortSignal | undefined;
}

/** How a listing is made. */
export interface ListOptions extends StoreCallOptions {
  /**
   * Also the objects in folders, with keys such as `folder/7.json`, which may be read: the locks of a store. A
   * store without folders ignores it. @default false
   */
  readonly folders?: boolean | undefined;
}

/** What a write may be given. */
export interface WriteOptions extends StoreCallOptions {
  /**
   * The age, in milliseconds, that other tasks have to see before they act on this state. A store that
   * reports no write times may do what it takes to show this age to a task that has not observed the state;
   * every other store ignores it.
   */
  readonly expiresAfterMs?: number | undefined;
}

/**
 * A place that offers atomic create-if-absent and replace-if-unchanged. This is all that the engine knows of
 * a store.
 *
 * Every method throws {@link StoreError} when the store gave no definite answer. Nothing is retried in here:
 * a blind retry of a conditional write turns a lost reply into a false conflict. There is no delete: lease
 * objects stay.
 */
export interface LeaseStore {
  /** The store as its user wrote it, for messages: `s3://bucket/prefix`. */
  readonly url: string;

  /**
   * True when a server keeps the conditions: its word is checked. The engine repeats its acquiring write,
   * which must be refused.
   */
  readonly remote: boolean;

  /**
   * The first pause of a task that found no free id, in milliseconds, unless the task's settings say it. Each
   * further one is half as long again, up to a limit.
   * @default 1200
   */
  readonly pollMs?: number | undefined;

  /**
   * What its times are cut to, in milliseconds: 1000 for whole seconds, 0 for exact times. An age with an
   * upper bound grows in such steps.
   */
  readonly timeStepMs: number;

  /**
   * The least time between two writes of one object that the store keeps up with, in milliseconds.
   * @default none
   */
  readonly minWriteIntervalMs?: number;

  /** The object, or undefined when there is no object of that key. */
  read(key: string, options?: StoreCallOptions): Promise<StoredObject | undefined>;

  /** Every object below the prefix, in as few requests as possible. */
  list(options?: ListOptions): Promise<Listing>;

  /**
   * The objects whose keys are greater than `after`, in the order of the keys, as many as one request shows;
   * without `after`, from the first. Offered where a listing of everything may take several requests.
   */
  listPage?(after: string | undefined, options?: ListOptions): Promise<ListingPage>;

  /** Writes the object only if there is no object of that key. */
  create(key: string, body: string, metadata: ObjectMetadata, options?: WriteOptions): Promise<WriteResult>;

  /** Writes the object only if its etag is still `etag`. An object that is gone is a conflict. */
  replace(
    key: string,
    body: string,
    metadata: ObjectMetadata,
    etag: string,
    options?: WriteOptions,
  ): Promise<WriteResult>;

  /**
   * Resolves when some object may have changed since the call; a hint that may come late, for nothing, or not
   * at all. Rejects with `signal.reason` when `signal` aborts.
   *
   * A store that knows what has changed calls `heed`, where it is given, synchronously with each change since
   * the call, and resolves once that returns true, or where it lost track. So a waiting task asks nothing at
   * each renewal. `heed` must not throw: that may end the watch. Where a store does not call `heed`, waiting
   * tasks poll, as on a store without `changed`.
   */
  changed?(signal: AbortSignal, heed?: (change: ObjectChange) => boolean): Promise<void>;

  /**
   * A text that changes whenever the store may have gone back in time: restored from a copy, promoted from a
   * replica without the last writes, replaced. Read again at each call. Offered where the store knows it; on
   * others `nodelease init --restored` says it.
   */
  epoch?(options?: StoreCallOptions): Promise<string>;

  /**
   * The states of all objects whose keys begin with `prefix`, in folders as well: key after key, and of each key
   * the newest first, as far as they are kept. Offered where a store keeps what a write has replaced.
   */
  history?(prefix: string, options: HistoryOptions): AsyncIterable<PastObject>;

  /**
   * What `nodelease doctor` shows of the servers, in addition to the probe. Offered where there is
   * something to say.
   */
  describe?(options?: StoreCallOptions): Promise<readonly StoreFact[]>;

  /**
   * Says of a request that is given up now what has not answered, and what may be wrong. Offered where that
   * may be another service than the store.
   *
   * @param within `within 4000 ms`
   * @returns for example `no usable answer from the source of the credentials (…) within 4000 ms`
   */
  noAnswer?(within: string): string;

  /** Removes a scratch object of `probeStore`; refuses every key that does not begin with `probe-`. */
  discardProbe(key: string, options?: StoreCallOptions): Promise<void>;

  /** Gives up sockets, watchers and file handles. Idempotent. */
  close(): Promise<void>;
}

/**
 * Why a store gave no definite answer. `unreachable`: no connection, or no answer in time. `unavailable`: it
 * answered 5xx, or is too busy. `denied`: no credentials, wrong ones, or no permission. `missing`: there is
 * no such bucket or folder. `unsupported`: it does not offer what it was asked for. `rejected`: it refused or
 * answered something that no store of this kind should.
 */
export type StoreFault = 'unreachable' | 'unavailable' | 'denied' | 'missing' | 'unsupported' | 'rejected';

/** The store gave no definite answer. */
export class StoreError extends NodeLeaseError {
  readonly fault: StoreFault;
  /**
   * `unknown`: a write may or may not have been applied, now or later. `not-applied`: it certainly was not.
   */
  readonly outcome: 'unknown' | 'not-applied';

  constructor(
    message: string,
    options: { fault: StoreFault; outcome: 'unknown' | 'not-applied'; cause?: unknown },
  ) {
    super(message, options);
    this.fault = options.fault;
    this.outcome = options.outcome;
  }

  /** `STORE_` and the fault. */
  get code() {
    return `STORE_${this.fault.toUpperCase() as Uppercase<StoreFault>}` as const;
  }

  /** True when the same call may well succeed a moment later. */
  get transient(): boolean {
    return this.fault === 'unreachable' || this.fault === 'unavailable';
  }
}
