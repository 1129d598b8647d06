// Leases in Google Cloud Storage: `nodelease/store/gcs`.

export type { HttpClient, HttpReply, HttpRequest } from '../http-client.js';
export { GcsLeaseStore, type GcsLeaseStoreOptions } from './gcs-lease-store.js';
export { type GcsStoreOptions, openGcsStore } from './open-gcs-store.js';
