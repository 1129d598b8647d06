import type { ShardsReport } from '../../src/node/wire/cluster-snapshot.js';

/**
 * A map of this many shards on the first nodes of a fleet, all at version 1: every fiftieth is to move, and one
 * in two hundred, and the last one, has no owner.
 */
export function scriptedShards(count: number, nodes: number): ShardsReport {
  const owner = (shard: number) =>
    Math.floor(((shard * 2_654_435_761) % 4_294_967_296) / (4_294_967_296 / nodes));
  const none = (shard: number) => shard % 200 === 120 || shard === count - 1;
  return {
    epoch: 41,
    problem: null,
    members: Array.from({ length: nodes }, (_, id) => ({ id, version: 1 })),
    shards: Array.from({ length: count }, (_, shard) => {
      if (none(shard)) return [-1, shard % 40, -1] as const;
      return [owner(shard), 1 + (shard % 40), shard % 50 === 7 ? (owner(shard) + 1) % nodes : -1] as const;
    }),
    failed: [],
    limits: [],
  };
}
