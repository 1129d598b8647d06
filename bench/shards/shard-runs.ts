import type { Clock } from '../../src/core/base/clock.js';

/** What happened to shards in some time. */
export interface Moves {
  /** For each start: how long no node had run the shard, in milliseconds. */
  readonly downMs: readonly number[];
  /** The longest time in which two nodes ran one shard, in milliseconds. */
  readonly twiceMs: number;
}

/** Which shards run on how many nodes. */
export class ShardRuns {
  readonly #shards: { nodes: number; since: number }[];
  #downMs: number[] = [];
  #twiceMs = 0;

  constructor(
    private readonly clock: Clock,
    count: number,
  ) {
    this.#shards = Array.from({ length: count }, () => ({ nodes: 0, since: 0 }));
  }

  /** A shard that no node runs. */
  get idle(): readonly number[] {
    return this.#shards.flatMap(({ nodes }, shard) => (nodes === 0 ? [shard] : []));
  }

  /** A node begins to run a shard. Call what it returns when that has ended. */
  begin(shard: number): () => void {
    const state = this.#shards[shard];
    if (state === undefined) throw new RangeError(`there is no shard ${shard}`);
    this.#downMs.push(state.nodes === 0 ? this.clock.monotonic() - state.since : 0);
    state.nodes += 1;
    state.since = this.clock.monotonic();
    let isRunning = true;
    return () => {
      if (!isRunning) return;
      isRunning = false;
      state.nodes -= 1;
      if (state.nodes > 0) this.#twiceMs = Math.max(this.#twiceMs, this.clock.monotonic() - state.since);
      state.since = this.clock.monotonic();
    };
  }

  /** What happened since the last call. */
  take(): Moves {
    const moves = { downMs: this.#downMs, twiceMs: this.#twiceMs };
    this.#downMs = [];
    this.#twiceMs = 0;
    return moves;
  }
}
