import type { Clock, RandomSource } from '../../src/core/base/clock.js';
import type { MemoryBucket } from '../../src/core/store/memory/memory-bucket.js';
import type { RequestCount } from '../storm/request-count.js';
import type { ShardRuns } from './shard-runs.js';

/** A lease, in milliseconds: the defaults of a new cluster. */
export const DURATION_MS = 15_000;
export const GRACE_MS = 1_000;
/** How long a shard takes to stop, in milliseconds. */
export const STOP_MS = 500;

export interface NodeOptions {
  readonly name: string;
  readonly clock: Clock;
  readonly bucket: MemoryBucket;
  readonly random: RandomSource;
  readonly latency: RandomSource;
  readonly count: number;
  /** How many node ids there are. */
  readonly ids: number;
  readonly runs: ShardRuns;
  /** Called for each write that is no renewal. */
  readonly onWrite: () => void;
}

/** A node that runs shards. */
export interface ShardNode {
  readonly requests: RequestCount;
  /** Stops all, hands all on, and ends. */
  leave(): Promise<void>;
  /** Its host crashes. */
  crash(): void;
}
