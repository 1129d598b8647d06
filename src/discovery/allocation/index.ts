// Node ids from ZooKeeper alone.

export { type AcquireFromZooKeeperOptions, acquireFromZooKeeper } from './acquire-from-zookeeper.js';
export { CLAIMS_PATH } from './claim-queue.js';
export { GROW_AT_INDEX, SHRINK_BELOW_INDEX } from './id-groups.js';
