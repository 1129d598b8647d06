// Leases in a folder of this machine: `nodelease/store/file`.

export { FileLeaseStore, type FileLeaseStoreOptions } from './file-lease-store.js';
export type { BootClock } from './object-ages.js';
