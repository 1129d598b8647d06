import { acquireLease } from '../../src/core/lease/acquire/acquire-lease.js';
import { ownShards } from '../../src/node/shards/index.js';
import { SHARDS_KEY } from '../../src/node/shards/shard-map.js';
import { ShapedStore } from '../storm/shaped-store.js';
import { LeaseAShard, type ShardTable } from './lease-a-shard.js';
import { DURATION_MS, GRACE_MS, type NodeOptions, type ShardNode, STOP_MS } from './shard-node.js';

/** A way to share shards among nodes. */
export interface Way {
  /** In tables and in the chart. */
  readonly title: string;
  /** How the nodes of one fleet start. */
  fleet(): (options: NodeOptions) => Promise<ShardNode>;
}

export const WAYS = {
  /** No shards: what the leases of node ids cost. */
  leases: { title: 'node ids alone', fleet: () => (options) => startOwner(options, false) },
  shards: { title: 'nodelease', fleet: () => (options) => startOwner(options, true) },
  'lease-a-shard': {
    title: 'a lease a shard',
    fleet: () => {
      const table: ShardTable = new Map();
      return async (options) => new LeaseAShard(options, table);
    },
  },
} as const satisfies Readonly<Record<string, Way>>;

export type WayName = keyof typeof WAYS;

async function startOwner(options: NodeOptions, hasShards: boolean): Promise<ShardNode> {
  const { name, clock, bucket, random, latency, count, ids, runs, onWrite } = options;
  const store = new ShapedStore({
    ...{ bucket, clock, random: latency, remote: false },
    onWrite: (key) => key === SHARDS_KEY && onWrite(),
  });
  const running = new Set<() => void>();
  const shared = { store, clock, random, taskId: name };
  const lease = await acquireLease({ ...shared, nodes: ids, durationMs: DURATION_MS, graceMs: GRACE_MS });
  if (hasShards)
    await ownShards(lease, {
      count,
      address: `${name}:8080`,
      start: (shard) => {
        const end = runs.begin(shard);
        running.add(end);
        return async () => {
          await clock.sleep(STOP_MS);
          end();
          running.delete(end);
        };
      },
    });
  return {
    get requests() {
      return store.requests;
    },
    leave: () => lease.release(),
    crash: () => {
      store.crash();
      for (const end of running) end();
    },
  };
}
