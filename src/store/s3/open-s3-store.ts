import { createS3Client, type S3ClientOptions } from './s3-client.js';
import { S3LeaseStore, type S3LeaseStoreOptions } from './s3-lease-store.js';

/** Settings of {@link openS3Store}: those of the store, and how to reach the service. */
export interface S3StoreOptions extends Omit<S3LeaseStoreOptions, 'client'>, S3ClientOptions {}

/**
 * Makes a store with a client of its own, which `close()` destroys. Nothing is sent yet.
 *
 * @throws {ConfigError} when no region is known and no endpoint is given
 */
export async function openS3Store(options: S3StoreOptions): Promise<S3LeaseStore> {
  return new S3LeaseStore({ ...options, client: await createS3Client(options) });
}
