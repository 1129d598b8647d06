// Ownership of shards on the lease of a node id: `nodelease/shards`.

export type { ShardEvent, StartShard, StopShard } from './holding.js';
export { type OwnedShard, type OwnedShards, type OwnShardsOptions, ownShards } from './own-shards.js';
export { type ShardKey, shardOf } from './shard-of.js';
export { type ShardRoute, type ShardRouter, type ShardRouterOptions, shardRouter } from './shard-router.js';
