import type { RandomSource } from '../../src/core/base/clock.js';
import { acquireLease } from '../../src/core/lease/acquire/acquire-lease.js';
import type { Lease } from '../../src/core/lease/model/lease.js';
import { StoreSession } from '../../src/core/lease/session/store-session.js';
import { MemoryBucket } from '../../src/core/store/memory/memory-bucket.js';
import {
  type MemoryCall,
  type MemoryIntercept,
  MemoryLeaseStore,
} from '../../src/core/store/memory/memory-lease-store.js';
import {
  type OwnedShards,
  type OwnShardsOptions,
  ownShards,
  type ShardEvent,
  type StopShard,
} from '../../src/node/shards/index.js';
import { decodeMap, SHARDS_KEY } from '../../src/node/shards/shard-map.js';
import { inVirtualTime, seededRandom, VirtualClock } from './virtual-clock.js';

/** The work of one shard on one task. */
export interface ShardRun {
  readonly task: string;
  readonly shard: number;
  readonly token: number;
  readonly from: number;
  /** Infinity while it runs. */
  to: number;
  readonly signal: AbortSignal;
}

/** What a request meets: `apply` carries it out. */
export type ShardFault = (call: MemoryCall, apply: () => void) => Promise<void> | void;

export interface ShardTask {
  readonly name: string;
  readonly lease: Lease;
  readonly shards: OwnedShards;
  readonly calls: MemoryCall[];
  readonly events: ShardEvent[];
  readonly network: { fault: ShardFault | undefined };
}

export interface ShardFleetOptions {
  readonly count: number;
  /** @default 8 */
  readonly nodes?: number;
  /** Whether the store reports changes. @default false */
  readonly watches?: boolean;
  readonly durationMs?: number;
  /** What the store's times are cut to. @default 1 */
  readonly timeStepMs?: number;
}

/** Tasks with shards on one store in virtual time; a request takes 40 ms. */
export function shardFleet(options: ShardFleetOptions) {
  const { count, nodes = 8, watches = false, durationMs = 15_000, timeStepMs = 1 } = options;
  const clock = new VirtualClock();
  const bucket = new MemoryBucket(clock, timeStepMs);
  const runs: ShardRun[] = [];
  const tasks: ShardTask[] = [];
  const violations: string[] = [];
  const lastToken = new Map<number, number>();

  const task = async (
    own: Partial<OwnShardsOptions> & { stopMs?: number; fault?: ShardFault; random?: RandomSource } = {},
  ): Promise<ShardTask> => {
    const name = `task-${tasks.length}`;
    const network: ShardTask['network'] = { fault: own.fault };
    const calls: MemoryCall[] = [];
    const events: ShardEvent[] = [];
    const intercept: MemoryIntercept = async (call, apply) => {
      calls.push(call);
      await clock.sleep(20);
      let applied: { reply: ReturnType<typeof apply> } | undefined;
      const once = () => {
        applied ??= { reply: apply() };
      };
      await network.fault?.(call, once);
      once();
      await clock.sleep(20);
      return (applied as unknown as { reply: ReturnType<typeof apply> }).reply;
    };
    const store = new MemoryLeaseStore({ clock, intercept }, bucket);
    if (!watches) Object.defineProperty(store, 'changed', { value: undefined });
    const { random = seededRandom(tasks.length + 1) } = own;
    const settings = { store, clock, random, taskId: name };
    const acquiring = acquireLease({ ...settings, nodes, durationMs, graceMs: 1_000 });
    const lease = await inVirtualTime(clock, acquiring);
    const { stopMs = 200, fault: _, random: __, ...asked } = own;
    const start = (shard: number, { token, signal }: { token: number; signal: AbortSignal }): StopShard => {
      const run = { task: name, shard, token, signal, from: clock.monotonic(), to: Number.POSITIVE_INFINITY };
      for (const other of runs)
        if (other.shard === shard && other.to > run.from)
          violations.push(`shard ${shard} starts on ${name} while it runs on ${other.task}`);
      if (token <= (lastToken.get(shard) ?? 0)) violations.push(`shard ${shard} starts again with ${token}`);
      lastToken.set(shard, token);
      runs.push(run);
      const end = () => {
        run.to = Math.min(run.to, clock.monotonic());
      };
      signal.addEventListener('abort', end, { once: true });
      return async () => {
        await clock.sleep(stopMs);
        end();
      };
    };
    const onEvent = (event: ShardEvent) => void events.push(event);
    const owning = ownShards(lease, { count, start, onEvent, address: `${name}:80`, ...asked });
    const shards = await inVirtualTime(clock, owning);
    const made = { name, lease, shards, calls, events, network };
    tasks.push(made);
    return made;
  };
  /** A task of a version that knows no shards. */
  const plainTask = (): Promise<Lease> => {
    const settings = { store: new MemoryLeaseStore({ clock }, bucket), clock, random: seededRandom(99) };
    const acquiring = acquireLease({ ...settings, taskId: 'plain', nodes, durationMs, graceMs: 1_000 });
    return inVirtualTime(clock, acquiring);
  };
  return {
    ...{ clock, bucket, runs, tasks, violations, task, plainTask },
    /** An operator's session with the store. */
    session: () => new StoreSession(new MemoryLeaseStore({ clock }, bucket), clock, 1_000),
    map: () => decodeMap(bucket.read(SHARDS_KEY)?.body ?? ''),
    /** How many shards run on each task. */
    counts: () =>
      tasks.map(({ name }) => runs.filter((run) => run.task === name && run.to > clock.monotonic()).length),
    running: () => new Set(runs.filter(({ to }) => to > clock.monotonic()).map(({ shard }) => shard)).size,
    /** Moves the clock on until all shards run; how long that took, in milliseconds. */
    async untilAllRun(withinMs = 120_000): Promise<number> {
      const begun = clock.monotonic();
      while (this.running() < count && clock.monotonic() - begun < withinMs) await clock.advance(100);
      return clock.monotonic() - begun;
    },
  };
}
