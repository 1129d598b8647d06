import { checked, maybe, NAME, TEXT } from '../../base/arguments.js';
import { createAwsClient } from '../aws/aws-client.js';
import type { LeaseStore } from '../lease-store.js';
import { observedAge } from '../observed-age.js';
import { requiredBy } from '../optional-package.js';
import type { ObjectStoreOptions } from '../store-driver.js';
import { DynamoDbLeaseStore } from './dynamodb-lease-store.js';

/**
 * Settings of {@link openDynamoDbStore}. The endpoint is that of a stand-in for DynamoDB: `AWS_ENDPOINT_URL_DYNAMODB`
 * or `AWS_ENDPOINT_URL` by default, else AWS. The prefix is not empty.
 */
export interface DynamoDbStoreOptions extends ObjectStoreOptions {
  /** Its partition key is `prefix` and its sort key `object`, both strings. */
  readonly table: string;
  /**
   * @default `AWS_REGION`, `AWS_DEFAULT_REGION`, the profile's region, else `us-east-1` when there is an
   * endpoint
   */
  readonly region?: string | undefined;
}

/**
 * Makes a store with its own client, whose ages this process observes. Nothing is sent yet.
 *
 * @throws {ConfigError} when `@aws-sdk/client-dynamodb` is missing, and when no region is known and no endpoint
 * is given
 */
export async function openDynamoDbStore(options: DynamoDbStoreOptions): Promise<LeaseStore> {
  const { table, prefix } = checked(options, {
    ...{ table: NAME, prefix: NAME },
    ...{ endpoint: maybe(TEXT), region: maybe(TEXT) },
  });
  const url = `dynamodb://${table}/${prefix}`;
  const sdk = await import('@aws-sdk/client-dynamodb').catch(requiredBy(url, '@aws-sdk/client-dynamodb'));
  const { AWS_ENDPOINT_URL_DYNAMODB, AWS_ENDPOINT_URL } = process.env;
  const endpoint = options.endpoint ?? (AWS_ENDPOINT_URL_DYNAMODB || AWS_ENDPOINT_URL || undefined);
  const client = await createAwsClient({ ...options, endpoint }, (config) => new sdk.DynamoDBClient(config));
  return observedAge(new DynamoDbLeaseStore(url, options, sdk, client), options.clock);
}
