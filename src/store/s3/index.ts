// Leases in S3: `nodelease/store/s3`.

export { openS3Store, type S3StoreOptions } from './open-s3-store.js';
export type { S3ClientOptions, S3Command, S3Requests } from './s3-client.js';
export { S3LeaseStore, type S3LeaseStoreOptions } from './s3-lease-store.js';
