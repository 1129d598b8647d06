// Leases in memory, for tests and simulations: `nodelease/store/memory`.

export type { Changes, Heed } from '../changes.js';
export { MemoryBucket } from './memory-bucket.js';
export {
  type MemoryCall,
  type MemoryIntercept,
  MemoryLeaseStore,
  type MemoryLeaseStoreOptions,
} from './memory-lease-store.js';
