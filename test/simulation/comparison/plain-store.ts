import type { Clock, RandomSource } from '../../../src/core/base/clock.js';
import { StoreSession } from '../../../src/core/lease/session/store-session.js';
import {
  type LeaseStore,
  type StoredObject,
  StoreError,
  type WriteResult,
} from '../../../src/core/store/lease-store.js';
import type { PlainObject } from './plain-object.js';

/**
 * What the SDKs of object stores do by default: that many attempts in all, and pauses in between.
 */
const ATTEMPTS = 3;
const PAUSE_MS = { first: 100, most: 2_000 };

/**
 * A store as the plain protocol uses it: through an SDK with its defaults, which makes a call that failed
 * again whatever the call was, conditional writes included.
 */
export class PlainStore {
  readonly #session: StoreSession;

  constructor(
    store: LeaseStore,
    private readonly clock: Clock,
    private readonly random: RandomSource,
    /** How long one attempt may take, in milliseconds. */
    timeoutMs: number,
  ) {
    this.#session = new StoreSession(store, clock, timeoutMs);
  }

  get requests(): number {
    return this.#session.requests;
  }

  get timeoutMs(): number {
    return this.#session.timeoutMs;
  }

  set timeoutMs(ms: number) {
    this.#session.timeoutMs = ms;
  }

  read(key: string, signal?: AbortSignal): Promise<StoredObject | undefined> {
    return this.#again(() => this.#session.read(key, signal && { signal }), signal);
  }

  /** Conditional: with an etag, replace; without one, create. */
  write(
    key: string,
    object: PlainObject,
    etag: string | undefined,
    signal?: AbortSignal,
  ): Promise<WriteResult> {
    return this.#again(() => this.#session.write(key, object, etag, signal && { signal }), signal);
  }

  async #again<T>(call: () => Promise<T>, signal: AbortSignal | undefined): Promise<T> {
    for (let attempt = 1; ; attempt += 1) {
      try {
        return await call();
      } catch (error) {
        if (attempt === ATTEMPTS || signal?.aborted || !(error instanceof StoreError && error.transient))
          throw error;
        const ceiling = Math.min(PAUSE_MS.most, PAUSE_MS.first * 2 ** (attempt - 1));
        await this.clock.sleep(ceiling * this.random.next(), signal);
      }
    }
  }
}
