// Ownership of shards on the lease of a node id: `nodelease/shards`.

export type { ShardEvent, ShardWorkEvent, StartShard, StopShard } from './holding.js';
export { ownShards } from './own-shards.js';
export type { OwnedShard, OwnedShards, OwnShardsOptions } from './owned-shards.js';
export { shardsReport } from './read-shards.js';
export { type ShardKey, shardOf } from './shard-of.js';
export { type ShardRoute, type ShardRouter, type ShardRouterOptions, shardRouter } from './shard-router.js';
