// Leases in a folder of this machine: `nodelease/store/file`.

export type { BootClock } from './boot-clock.js';
export { FileLeaseStore, type FileLeaseStoreOptions } from './file-lease-store.js';
