import {
  type LeaseStore,
  type Listing,
  type StoredObject,
  StoreError,
  type WriteResult,
} from '../../src/core/store/lease-store.js';

/**
 * What of the way to a store is cut: all of it, or only the way back, so that writes are applied and their
 * replies are lost.
 */
export type Cut = 'requests' | 'replies';

/** A store whose connection can be cut, for good. */
export class SeveredStore implements LeaseStore {
  readonly url: string;
  readonly remote: boolean;
  readonly pollMs: number | undefined;
  readonly timeStepMs: number;
  #cut: Cut | undefined;

  constructor(private readonly store: LeaseStore) {
    this.url = store.url;
    this.remote = store.remote;
    this.pollMs = store.pollMs;
    this.timeStepMs = store.timeStepMs;
  }

  cut(what: Cut): void {
    this.#cut = what;
  }

  read(...call: Parameters<LeaseStore['read']>): Promise<StoredObject | undefined> {
    return this.#through(() => this.store.read(...call));
  }

  list(...call: Parameters<LeaseStore['list']>): Promise<Listing> {
    return this.#through(() => this.store.list(...call));
  }

  create(...call: Parameters<LeaseStore['create']>): Promise<WriteResult> {
    return this.#through(() => this.store.create(...call));
  }

  replace(...call: Parameters<LeaseStore['replace']>): Promise<WriteResult> {
    return this.#through(() => this.store.replace(...call));
  }

  async changed(...call: Parameters<NonNullable<LeaseStore['changed']>>): Promise<void> {
    await this.store.changed?.(...call);
  }

  discardProbe(...call: Parameters<LeaseStore['discardProbe']>): Promise<void> {
    return this.#through(() => this.store.discardProbe(...call));
  }

  /** The store belongs to its opener. */
  async close(): Promise<void> {}

  async #through<T>(request: () => Promise<T>): Promise<T> {
    if (this.#cut !== 'requests') {
      const reply = await request();
      if (this.#cut === undefined) return reply;
    }
    throw new StoreError(`${this.url}: the connection was cut`, { fault: 'unreachable', outcome: 'unknown' });
  }
}
