import { systemClock, systemRandom } from '../../src/core/base/system.js';
import { MemoryBucket } from '../../src/core/store/memory/memory-bucket.js';
import { MemoryLeaseStore } from '../../src/core/store/memory/memory-lease-store.js';
import { observedAge } from '../../src/core/store/observed-age.js';
import { inPages } from '../support/in-pages.js';
import { timeless } from '../support/timeless-store.js';
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

leaseStoreContract('memory with observed ages', {
  open: async () => {
    const bucket = new MemoryBucket(systemClock, 0, () => systemRandom.hex(12));
    return observedAge(
      timeless(inPages(new MemoryLeaseStore({ clock: systemClock }, bucket), 5)),
      systemClock,
    );
  },
  ageResolutionMs: 1,
});
