import { anySignal } from '../../base/abort.js';
import type { Clock, RandomSource } from '../../base/clock.js';
import type { ClusterConfig } from '../model/cluster-config.js';
import type { AdoptedWidth } from '../model/lease-state.js';
import { readExistingCluster } from '../session/cluster-store.js';
import { whileStoreIsAway } from '../session/store-retry.js';
import type { SessionCall, StoreSession } from '../session/store-session.js';
import { type TenureTime, TenureWidth, type WidthListener } from './tenure-time.js';

interface StoreTenureTimeOptions {
  readonly session: StoreSession;
  readonly clock: Clock;
  readonly random: RandomSource;
  /** Aborts when the tenure ends in either way. */
  readonly signal: AbortSignal;
  /** The last id timestamp of the earlier tenures: see {@link Tenure}. */
  readonly stampedUntil: number;
  /** The width in the acquiring write, which other tasks can read. */
  readonly idWidth: number;
  /** The `timestamp` of the last write that is known to be applied. */
  readonly before: () => number;
  /** Throws when the tenure has ended. */
  readonly check: () => void;
}

/** The id time window of a tenure whose lease is in a store. */
export class StoreTenureTime implements TenureTime {
  readonly clock: Clock;
  readonly signal: AbortSignal;
  readonly after: number;
  readonly #width: TenureWidth;
  /**
   * The width that may be published: that of all ids of this tenure from now on, and the last timestamp of
   * narrower ids.
   */
  adopted: AdoptedWidth;
  /** When the last successful read of the settings was sent, on the monotonic clock. */
  lookedAt = Number.NEGATIVE_INFINITY;
  /** The last id timestamp of this node id, in this tenure or before. */
  stampedUntil: number;

  constructor(private readonly options: StoreTenureTimeOptions) {
    this.clock = options.clock;
    this.signal = options.signal;
    this.after = options.stampedUntil;
    this.stampedUntil = options.stampedUntil;
    this.adopted = { idWidth: options.idWidth, narrowIdsUntil: options.stampedUntil };
    this.#width = new TenureWidth(options.idWidth, (idWidth) => {
      this.adopted = { idWidth, narrowIdsUntil: this.stampedUntil };
    });
  }

  get idWidth(): number {
    return this.#width.value;
  }

  async prepare(signal?: AbortSignal): Promise<void> {
    const { clock, random } = this.options;
    signal?.throwIfAborted();
    this.check();
    if (Number.isFinite(this.lookedAt)) return;
    const ended = anySignal(this.signal, signal);
    try {
      const retry = whileStoreIsAway({
        ...{ clock, random, signal: ended.signal },
        // As long as the lease is held.
        until: Number.POSITIVE_INFINITY,
      });
      await retry((call) => this.look(call));
      // Either may have ended just as the answer came.
      signal?.throwIfAborted();
      this.check();
    } catch (error) {
      signal?.throwIfAborted();
      this.check();
      throw error;
    } finally {
      ended.release();
    }
  }

  /**
   * Reads the cluster's settings, and widens the ids if they request it.
   *
   * @throws {StoreUnusableError} when there are no settings, or unreadable ones
   * @throws {StoreError}
   */
  async look(call: SessionCall): Promise<ClusterConfig> {
    const { session, clock } = this.options;
    const askedAt = clock.monotonic();
    const { config } = await readExistingCluster(session, call);
    this.#width.widen(config.idWidth);
    this.lookedAt = askedAt;
    return config;
  }

  onWidth(listener: WidthListener): () => void {
    return this.#width.onWidth(listener);
  }

  now(): number {
    return this.options.session.storeNow().min;
  }

  before(): number {
    return this.options.before();
  }

  stamp(untilMs: number): void {
    this.stampedUntil = Math.max(this.stampedUntil, untilMs);
  }

  check(): void {
    this.options.check();
  }
}
