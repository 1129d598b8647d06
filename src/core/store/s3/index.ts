// Leases in S3: `nodelease/store/s3`.

export { openS3Store, type S3ClientOptions, type S3StoreOptions } from './open-s3-store.js';
export { type S3Command, S3LeaseStore, type S3LeaseStoreOptions, type S3Requests } from './s3-lease-store.js';
