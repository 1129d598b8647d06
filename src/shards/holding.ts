import { withTimeout } from '../base/abort.js';
import type { Clock } from '../base/clock.js';
import type { LeaseEvent } from '../lease/model/lease.js';

/** Ends the work on a shard. It settles when the work has ended: then another node may run the shard. */
export type StopShard = () => Promise<void> | void;

/** Begins the work on a shard. Resolves to what ends it. */
export type StartShard = (
  shard: number,
  holding: {
    /** The fencing token: greater for every new holding of this shard, never used twice. */
    readonly token: number;
    /** Aborts when the work must end at once: the lease has ended, or the stop has taken too long. */
    readonly signal: AbortSignal;
  },
) => Promise<StopShard | undefined> | StopShard | undefined;

/** What happens to the shards of this node. Listeners must not block. */
export type ShardEvent =
  | { readonly type: 'started' | 'stopped'; readonly shard: number; readonly token: number }
  /** To be stopped by `deadline`, on the monotonic clock: then the signal aborts. */
  | {
      readonly type: 'stopping';
      readonly shard: number;
      readonly token: number;
      readonly deadline: number;
    }
  /** The work could not be begun, has failed to end, or has not ended in time. */
  | { readonly type: 'failed'; readonly shard: number; readonly token: number; readonly error: unknown }
  | Extract<LeaseEvent, { type: 'damaged' | 'store-failed' }>;

export interface HoldingOptions {
  readonly clock: Clock;
  readonly start: StartShard;
  readonly stopTimeoutMs: number;
  /** How long a shard that could not be begun stays here before it is handed on, in milliseconds. */
  readonly pauseMs: number;
  readonly emit: (event: ShardEvent) => void;
}

/** The work of one shard under one token. */
export class Holding {
  #state: 'starting' | 'running' | 'stopping' = 'starting';
  readonly #abort = new AbortController();
  readonly #begun: Promise<StopShard | undefined>;
  #ended: Promise<void> | undefined;

  constructor(
    readonly shard: number,
    readonly token: number,
    private readonly options: HoldingOptions,
    private readonly onEnded: (holding: Holding) => void,
  ) {
    this.#begun = this.#begin();
  }

  get isRunning(): boolean {
    return this.#state === 'running';
  }

  get isStopping(): boolean {
    return this.#state === 'stopping';
  }

  get isAborted(): boolean {
    return this.#abort.signal.aborted;
  }

  /** Resolves when the work has ended. */
  stop(): Promise<void> {
    this.#ended ??= this.#end();
    return this.#ended;
  }

  /** Ends the work at once. */
  abort(reason: unknown): void {
    this.#abort.abort(reason);
    void this.stop();
  }

  async #begin(): Promise<StopShard | undefined> {
    const { shard, token } = this;
    const { start, emit, clock, pauseMs } = this.options;
    try {
      const stop = await start(shard, { token, signal: this.#abort.signal });
      if (this.#state === 'starting') {
        this.#state = 'running';
        emit({ type: 'started', shard, token });
      }
      return stop;
    } catch (error) {
      emit({ type: 'failed', shard, token, error });
      const pause = clock.sleep(pauseMs, this.#abort.signal).catch(() => undefined);
      void pause.then(() => this.stop());
      return undefined;
    }
  }

  async #end(): Promise<void> {
    const { shard, token } = this;
    const { emit, clock, stopTimeoutMs } = this.options;
    this.#state = 'stopping';
    emit({ type: 'stopping', shard, token, deadline: clock.monotonic() + stopTimeoutMs });
    const work = this.#begun
      .then((stop) => stop?.())
      .then(
        () => true,
        (error) => {
          emit({ type: 'failed', shard, token, error });
          return true;
        },
      );
    if (!(await withTimeout(clock, stopTimeoutMs, work))) {
      const error = new Error(`shard ${shard} has not stopped within ${stopTimeoutMs} ms`);
      emit({ type: 'failed', shard, token, error });
      this.#abort.abort(error);
      await work;
    }
    emit({ type: 'stopped', shard, token });
    this.onEnded(this);
  }
}
