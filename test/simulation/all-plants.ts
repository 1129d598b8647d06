import { PATH_PLANTS } from './path-plants.js';
import { PLANTS, type Plant } from './plants.js';
import { SHARD_PATH_PLANTS } from './shard-path-plants.js';
import { SHARD_PLANTS } from './shard-plants.js';
import { RECIPE_PLANTS } from './zookeeper/plants.js';

/**
 * Every mistake that the simulator is known to find: in the lease engine, in the ownership of shards, and in
 * the recipes on ZooKeeper.
 */
export const ALL_PLANTS: readonly Plant[] = [
  ...PLANTS,
  ...PATH_PLANTS,
  ...SHARD_PLANTS,
  ...SHARD_PATH_PLANTS,
  ...RECIPE_PLANTS,
];
