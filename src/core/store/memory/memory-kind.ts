import type { StoreKind } from '../store-kind.js';
import type { MemoryLeaseStoreOptions } from './memory-lease-store.js';

/** The memory of this process. */
export const MEMORY: StoreKind<MemoryLeaseStoreOptions> = {
  schemes: ['memory'],
  form: 'memory:',
  sharedBy: 'process',

  parse(text, { fail }) {
    if (text !== '') fail('memory: with nothing behind it');
    return {};
  },

  open: async (options) => new (await import('./memory-lease-store.js')).MemoryLeaseStore(options),
};
