import { anySignal } from '../../base/abort.js';
import type { Clock, RandomSource } from '../../base/clock.js';
import { StoreUnusableError } from '../../base/errors.js';
import { CLUSTER_KEY, type ClusterConfig } from '../model/cluster-config.js';
import type { AdoptedWidth } from '../model/lease-state.js';
import { readCluster } from '../session/cluster-store.js';
import { retry, whileStoreIsAway } from '../session/retry.js';
import type { SessionCall, StoreSession } from '../session/store-session.js';
import type { TenureTime } from './tenure-time.js';
import { TenureWidth, type WidthListener } from './tenure-width.js';

export interface StoreTenureTimeOptions {
  readonly session: StoreSession;
  readonly clock: Clock;
  readonly random: RandomSource;
  /** Aborts when the tenure ends in either way. */
  readonly signal: AbortSignal;
  /** The last millisecond, in store time, that other tasks' ids may be stamped with. */
  readonly stampedUntil: number;
  /** The width that the acquiring write told the others. */
  readonly idWidth: number;
  /** The `timestamp` of the last write that is known to be applied. */
  readonly before: () => number;
  /** Throws when the tenure has ended. */
  readonly check: () => void;
}

/** A tenure's share of store time, where the lease stands in a store. */
export class StoreTenureTime implements TenureTime {
  readonly clock: Clock;
  readonly signal: AbortSignal;
  readonly after: number;
  readonly #width: TenureWidth;
  /** What others may be told. */
  #adopted: AdoptedWidth;
  #lookedAt = Number.NEGATIVE_INFINITY;
  #stampedUntil: number;

  constructor(private readonly options: StoreTenureTimeOptions) {
    this.clock = options.clock;
    this.signal = options.signal;
    this.after = options.stampedUntil;
    this.#stampedUntil = options.stampedUntil;
    this.#adopted = { idWidth: options.idWidth, narrowIdsUntil: options.stampedUntil };
    this.#width = new TenureWidth(options.idWidth, (idWidth) => {
      this.#adopted = { idWidth, narrowIdsUntil: this.#stampedUntil };
    });
  }

  get idWidth(): number {
    return this.#width.value;
  }

  /** The width that no narrower ids are made than any more in this tenure, and how late those are stamped. */
  get adopted(): AdoptedWidth {
    return this.#adopted;
  }

  /** The last millisecond that an id of this node id may be stamped with, in this tenure or before. */
  get stampedUntil(): number {
    return this.#stampedUntil;
  }

  /** When the cluster's settings were asked for that were read last in this tenure, on the monotonic clock. */
  get lookedAt(): number {
    return this.#lookedAt;
  }

  async prepare(signal?: AbortSignal): Promise<void> {
    const { clock, random } = this.options;
    signal?.throwIfAborted();
    this.check();
    if (Number.isFinite(this.#lookedAt)) return;
    const ended = anySignal(this.signal, signal);
    try {
      // As long as the lease lasts.
      const policy = whileStoreIsAway({ clock, random, signal: ended.signal, until: Number.POSITIVE_INFINITY });
      await retry(() => this.look({ signal: ended.signal }), {
        ...policy,
        shouldRetry: (error) => policy.shouldRetry(error) && !ended.signal.aborted,
      });
    } catch (error) {
      signal?.throwIfAborted();
      this.check();
      throw error;
    } finally {
      ended.release();
    }
  }

  /**
   * Looks whether the cluster asks for wider ids. Resolves to its settings.
   *
   * @throws {StoreUnusableError} when there are no settings, or none that can be understood
   * @throws {StoreError}
   */
  async look(call: SessionCall): Promise<ClusterConfig> {
    const { session, clock } = this.options;
    const askedAt = clock.monotonic();
    const cluster = await readCluster(session, call);
    if (cluster === undefined) throw new StoreUnusableError(`${session.store.url}: ${CLUSTER_KEY} is gone`);
    this.#width.widen(cluster.config.idWidth);
    this.#lookedAt = askedAt;
    return cluster.config;
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
    this.#stampedUntil = Math.max(this.#stampedUntil, untilMs);
  }

  check(): void {
    this.options.check();
  }
}
