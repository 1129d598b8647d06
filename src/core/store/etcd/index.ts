// Leases in etcd: `nodelease/store/etcd`.

export type { EtcdAccess } from './etcd-access.js';
export { EtcdLeaseStore, type EtcdLeaseStoreOptions } from './etcd-lease-store.js';
