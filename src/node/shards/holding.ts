import { withTimeout } from '../../core/base/abort.js';
import type { Clock } from '../../core/base/clock.js';
import type { LeaseEvent } from '../../core/lease/model/lease.js';

/**
 * Ends the work on a shard. It resolves when the work has ended: then another node may run the shard. Where it
 * rejects, the shard stays with this node until its lease ends.
 */
export type StopShard = () => Promise<void> | void;

/**
 * Begins the work on a shard. Resolves to what ends it. Where it rejects, no work may run: then another node
 * gets the shard.
 */
export type StartShard = (
  shard: number,
  holding: {
    /** The fencing token: greater for every new holding of this shard, never used twice. */
    readonly token: number;
    /** Aborts when the work must end at once: the lease has ended, or the start or stop has taken too long. */
    readonly signal: AbortSignal;
    /**
     * Says that the work has failed by itself. The shard is stopped, and another node gets it, as after a start
     * that fails.
     */
    readonly fail: (error: unknown) => void;
  },
) => Promise<StopShard | undefined> | StopShard | undefined;

/** What happens to the work of one shard. */
export type ShardWorkEvent =
  | { readonly type: 'started' | 'stopped' }
  /** To be stopped by `deadline`, on the monotonic clock: then the signal aborts. */
  | { readonly type: 'stopping'; readonly deadline: number }
  /** The work has not been begun in time, or has failed; or it has failed to end, or has not ended in time. */
  | { readonly type: 'failed'; readonly step: 'start' | 'stop'; readonly error: unknown };

/** What happens to the shards of this node. Listeners must not block. */
export type ShardEvent =
  | (ShardWorkEvent & { readonly shard: number; readonly token: number })
  /** A newer map is followed. What it starts and stops comes after this. */
  | { readonly type: 'epoch'; readonly epoch: number }
  | Extract<LeaseEvent, { type: 'damaged' | 'store-failed' }>;

export interface HoldingOptions {
  readonly clock: Clock;
  readonly start: StartShard;
  readonly startTimeoutMs: number;
  readonly stopTimeoutMs: number;
  /** By shard: 1 where the work has begun, and its stop has not. Small, so that it stays in the cache. */
  readonly running: Uint8Array;
  readonly emit: (event: ShardEvent) => void;
}

/** The stop of a shard has taken too long: why its signal aborts although the shard is still this node's. */
export class StopTimeoutError extends Error {}

/** The work of one shard under one token. */
export class Holding {
  state: 'starting' | 'running' | 'stopping' = 'starting';
  /** Since when it runs, on the monotonic clock. */
  runsSince = Number.POSITIVE_INFINITY;
  readonly #abort = new AbortController();
  readonly #begun: Promise<StopShard | undefined>;
  #ended: Promise<void> | undefined;

  constructor(
    readonly shard: number,
    readonly token: number,
    private readonly options: HoldingOptions,
    /** Called before {@link onEnded}. */
    private readonly onFailed: () => void,
    private readonly onEnded: () => void,
  ) {
    this.#begun = this.#begin();
  }

  get isAborted(): boolean {
    return this.#abort.signal.aborted;
  }

  /** Resolves when the work has ended, or its stop has failed. */
  stop(): Promise<void> {
    if (this.#ended === undefined) {
      const { clock, stopTimeoutMs, running } = this.options;
      this.state = 'stopping';
      running[this.shard] = 0;
      this.#ended = this.#end();
      // A listener may call this again.
      this.#emit({ type: 'stopping', deadline: clock.monotonic() + stopTimeoutMs });
    }
    return this.#ended;
  }

  /** Ends the work at once. */
  abort(reason: unknown): void {
    this.#abort.abort(reason);
    void this.stop();
  }

  async #begin(): Promise<StopShard | undefined> {
    const begun = this.#start();
    try {
      const stop = await begun;
      if (this.state === 'starting') {
        this.state = 'running';
        this.runsSince = this.options.clock.monotonic();
        this.options.running[this.shard] = 1;
        this.#emit({ type: 'started' });
      }
      return stop;
    } catch (error) {
      this.#fail(error);
      return undefined;
    }
  }

  /** Settles as the start does, whenever that is: until then its work may begin. */
  async #start(): Promise<StopShard | undefined> {
    const { start, clock, startTimeoutMs } = this.options;
    const fail = (error: unknown) => this.#fail(error);
    const started = start(this.shard, { token: this.token, signal: this.#abort.signal, fail });
    if (started === undefined || typeof started === 'function') return started;
    const hasSettled = () => true;
    // In JavaScript it may be anything else: then its work may run, and its stop fails.
    const settled = Promise.resolve(started).then(hasSettled, hasSettled);
    if ((await withTimeout(clock, startTimeoutMs, settled)) === undefined && this.state === 'starting') {
      const error = new Error(`shard ${this.shard} has not started within ${startTimeoutMs} ms`);
      this.#fail(error);
      this.#abort.abort(error);
    }
    return started;
  }

  /** T9: this node is not to have the shard for now. */
  #fail(error: unknown): void {
    this.#emit({ type: 'failed', step: 'start', error });
    if (this.state === 'stopping') return;
    void this.stop();
    this.onFailed();
  }

  async #end(): Promise<void> {
    const { clock, stopTimeoutMs } = this.options;
    // The start itself may have called this.
    const work = Promise.resolve()
      .then(() => this.#begun)
      .then((stop) => stop?.())
      .then(() => true);
    const fail = (error: unknown) => {
      this.#emit({ type: 'failed', step: 'stop', error });
      this.#abort.abort(error);
    };
    try {
      if ((await withTimeout(clock, stopTimeoutMs, work)) !== true) {
        fail(new StopTimeoutError(`shard ${this.shard} has not stopped within ${stopTimeoutMs} ms`));
        await work;
      }
    } catch (error) {
      // The work may still run. So it is not handed on, and the end of the lease ends it (T5, T7).
      return fail(error);
    }
    this.#emit({ type: 'stopped' });
    this.onEnded();
  }

  #emit(event: ShardWorkEvent): void {
    this.options.emit({ ...event, shard: this.shard, token: this.token });
  }
}
