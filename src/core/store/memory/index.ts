// Leases in memory, for tests and simulations: `nodelease/store/memory`.

export type { Changes, Heed } from '../store-driver.js';
export { MemoryBucket } from './memory-bucket.js';
export {
  type MemoryCall,
  type MemoryIntercept,
  MemoryLeaseStore,
  type MemoryLeaseStoreOptions,
} from './memory-lease-store.js';
