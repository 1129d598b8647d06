import { PLANTS, type Plant } from './plants.js';
import { RECIPE_PLANTS } from './zookeeper/plants.js';

/**
 * Every mistake that the simulator is known to find: in the lease engine, and in the recipes on ZooKeeper.
 */
export const ALL_PLANTS: readonly Plant[] = [...PLANTS, ...RECIPE_PLANTS];
