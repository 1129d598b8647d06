import { MemoryBucket } from '../../src/core/store/memory/memory-bucket.js';
import { Dice } from '../../test/simulation/world/dice.js';
import { percentile } from '../comparison.js';
import { NO_REQUESTS, plus, type RequestCount, since, times } from '../storm/request-count.js';
import { VirtualTime } from '../storm/virtual-time.js';
import { LeaseAShard } from './lease-a-shard.js';
import type { ShardNode } from './shard-node.js';
import { type Moves, ShardRuns } from './shard-runs.js';
import { WAYS, type WayName } from './ways.js';

export interface SceneOptions {
  readonly way: WayName;
  readonly count: number;
  readonly nodes: number;
  readonly seed: number;
  /** How many nodes crash, one after the other. */
  readonly crashes: number;
}

/** What a change of the fleet costs: the mean of several such changes. */
export interface ChangeCost {
  /** Of the whole fleet, renewals left out. */
  readonly writes: number;
  /** How many times a shard started. */
  readonly starts: number;
  /** How long no node ran a shard that started: milliseconds. */
  readonly down: { readonly medianMs: number; readonly p99Ms: number; readonly maxMs: number };
  /** The longest time in which two nodes ran one shard, in milliseconds. */
  readonly twiceMs: number;
}

export const CHANGES = ['join', 'leave', 'crash', 'rolling'] as const;
export type ChangeName = (typeof CHANGES)[number];

export interface SceneCosts extends SceneOptions {
  /** Of one node in a minute while no node comes or goes, its node id included. */
  readonly steady: RequestCount;
  readonly changes: Readonly<Record<ChangeName, ChangeCost>>;
}

/** Until a fleet that starts is settled, and after each change, in milliseconds of virtual time. */
const SETTLING_MS = { start: 120_000, change: 75_000 };
const STEADY_MINUTES = 3;
/** A rolling restart: how many nodes at a time, and how often. */
const AT_A_TIME = 5;
const RESTART_EVERY_MS = 30_000;
const MAX_MS = 24 * 3_600_000;

/**
 * Lets a fleet share shards in virtual time, on a store in memory that is as far away as S3. Then one node
 * joins, one leaves, one crashes, and all are restarted, one change after the other.
 *
 * @throws Error when a shard does not run once a change is over
 */
export function measureScene(options: SceneOptions): Promise<SceneCosts> {
  const time = new VirtualTime();
  return time.run(new Scene(options, time).measure(), MAX_MS);
}

class Scene {
  readonly #dice: Dice;
  readonly #bucket: MemoryBucket;
  readonly #runs: ShardRuns;
  readonly #startNode: ReturnType<(typeof WAYS)[WayName]['fleet']>;
  /** The longest-living first. */
  #nodes: ShardNode[] = [];
  #started = 0;
  #writes = 0;

  constructor(
    private readonly options: SceneOptions,
    private readonly time: VirtualTime,
  ) {
    this.#dice = new Dice(options.seed);
    this.#bucket = new MemoryBucket(time, 1_000);
    this.#runs = new ShardRuns(time, options.count);
    this.#startNode = WAYS[options.way].fleet();
  }

  async measure(): Promise<SceneCosts> {
    const { nodes, count } = this.options;
    await Promise.all(Array.from({ length: nodes }, () => this.#join()));
    // It has no way to share them quickly: the fleet starts with fair shares.
    for (let shard = 0; shard < count; shard += 1) {
      const node = this.#nodes[shard % nodes];
      if (node instanceof LeaseAShard) node.give(shard);
    }
    await this.time.sleep(SETTLING_MS.start);
    const before = this.#requests();
    await this.time.sleep(STEADY_MINUTES * 60_000);
    const steady = times(since(before, this.#requests()), 1 / nodes / STEADY_MINUTES);
    const seen: Record<ChangeName, Seen[]> = { join: [], leave: [], crash: [], rolling: [] };
    seen.join.push(await this.#change(() => this.#join()));
    seen.leave.push(await this.#change(async () => this.#nodes.shift()?.leave()));
    for (let crash = 0; crash < this.options.crashes; crash += 1) {
      seen.crash.push(await this.#change(async () => this.#nodes.shift()?.crash()));
      seen.join.push(await this.#change(() => this.#join()));
    }
    seen.rolling.push(await this.#change(() => this.#restartAll()));
    const [join, leave, crash, rolling] = CHANGES.map((name) => costOf(seen[name])) as ChangeCost[];
    return { ...this.options, steady, changes: { join, leave, crash, rolling } as SceneCosts['changes'] };
  }

  async #join(): Promise<void> {
    const at = this.#started;
    this.#started += 1;
    const node = await this.#startNode({
      ...{ name: `task-${at}`, clock: this.time, bucket: this.#bucket, runs: this.#runs },
      ...{ random: this.#dice.fork(1, at), latency: this.#dice.fork(2, at) },
      ...{ count: this.options.count, ids: this.options.nodes + 2 * AT_A_TIME },
      onWrite: () => {
        this.#writes += 1;
      },
    });
    this.#nodes.push(node);
  }

  async #restartAll(): Promise<void> {
    for (let left = this.#nodes.length; left > 0; left -= AT_A_TIME) {
      const leaving = this.#nodes.splice(0, Math.min(left, AT_A_TIME));
      await Promise.all(
        leaving.map(async (node) => {
          await node.leave();
          await this.#join();
        }),
      );
      await this.time.sleep(RESTART_EVERY_MS);
    }
  }

  async #change(act: () => Promise<void>): Promise<Seen> {
    this.#runs.take();
    this.#writes = 0;
    await act();
    await this.time.sleep(SETTLING_MS.change);
    const { idle } = this.#runs;
    if (this.options.way !== 'leases' && idle.length > 0)
      throw new Error(`${idle.length} of ${this.options.count} shards do not run after a change`);
    return { ...this.#runs.take(), writes: this.#writes };
  }

  #requests(): RequestCount {
    return this.#nodes.map(({ requests }) => requests).reduce(plus, NO_REQUESTS);
  }
}

interface Seen extends Moves {
  readonly writes: number;
}

function costOf(seen: readonly Seen[]): ChangeCost {
  const downMs = seen.flatMap((one) => one.downMs);
  const writes = seen.reduce((sum, one) => sum + one.writes, 0);
  return {
    writes: writes / seen.length,
    starts: downMs.length / seen.length,
    down: {
      medianMs: percentile(downMs, 0.5),
      p99Ms: percentile(downMs, 0.99),
      maxMs: percentile(downMs, 1),
    },
    twiceMs: Math.max(...seen.map(({ twiceMs }) => twiceMs)),
  };
}
