import { checked, NAME, TEXT } from '../../base/arguments.js';
import { type AwsAccess, createAwsClient, repeatCredentials } from '../aws/aws-client.js';
import { bucketSessions } from './bucket-sessions.js';
import { S3LeaseStore, type S3LeaseStoreOptions } from './s3-lease-store.js';
import { S3Client } from './sdk.js';

/** How to reach the S3 service. */
export interface S3ClientOptions extends AwsAccess {}

/** Settings of {@link openS3Store}: those of the store, and how to reach the service. */
export interface S3StoreOptions extends Omit<S3LeaseStoreOptions, 'client'>, S3ClientOptions {}

/**
 * Makes a store with its own client. Nothing is sent yet.
 * @throws {ConfigError} when no region is known and no endpoint is given, and for one that is no server's URL
 */
export async function openS3Store(options: S3StoreOptions): Promise<S3LeaseStore> {
  checked(options, { bucket: NAME, prefix: TEXT });
  const client = await createS3Client(options);
  client.config.s3ExpressIdentityProvider = bucketSessions(client, options);
  return new S3LeaseStore({
    ...options,
    client: {
      ...repeatCredentials(client, options.clock),
      send: client.send.bind(client) as typeof client.send,
    },
  });
}

/**
 * Makes the SDK's client with its own retries off.
 * @throws {ConfigError} when no region is known and no endpoint is given, and for one that is no server's URL
 */
export async function createS3Client(options: S3ClientOptions): Promise<S3Client> {
  return createAwsClient(
    'S3',
    options,
    (config) =>
      new S3Client({
        ...config,
        requestChecksumCalculation: 'WHEN_REQUIRED',
        responseChecksumValidation: 'WHEN_REQUIRED',
        ...(config.endpoint !== undefined && { forcePathStyle: true }),
      }),
  );
}
