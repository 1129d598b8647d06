import { systemClock } from '../../src/base/system.js';
import { MemoryLeaseStore } from '../../src/store/memory/memory-lease-store.js';
import { leaseStoreContract } from './lease-store-contract.js';

leaseStoreContract('memory', {
  open: async () => new MemoryLeaseStore({ clock: systemClock }),
  reopen: async (store) => (store instanceof MemoryLeaseStore ? store.connect() : store),
  ageResolutionMs: 1,
});

leaseStoreContract('memory in whole seconds', {
  open: async () => new MemoryLeaseStore({ clock: systemClock, resolutionMs: 1000 }),
  ageResolutionMs: 1000,
});
