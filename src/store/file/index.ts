// Leases in a folder of this machine: `nodelease/store/file`.

export { FileLeaseStore, type FileLeaseStoreOptions } from './file-lease-store.js';
