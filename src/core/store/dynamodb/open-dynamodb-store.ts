import { checked, NAME } from '../../base/arguments.js';
import { type AwsAccess, createAwsClient } from '../aws/aws-client.js';
import type { LeaseStore } from '../lease-store.js';
import { observedAge } from '../observed-age.js';
import { requiredBy } from '../optional-package.js';
import type { ObjectStoreOptions } from '../store-driver.js';
import { DynamoDbLeaseStore } from './dynamodb-lease-store.js';

/** Settings of {@link openDynamoDbStore}. The prefix is not empty. */
export interface DynamoDbStoreOptions extends ObjectStoreOptions, AwsAccess {
  /** Its partition key is `prefix` and its sort key `object`, both strings. */
  readonly table: string;
}

/**
 * Makes a store with its own client, whose ages this process observes. Nothing is sent yet.
 *
 * @throws {ConfigError} when `@aws-sdk/client-dynamodb` is missing, when no region is known and no endpoint is given,
 * and for one that is no server's URL
 */
export async function openDynamoDbStore(options: DynamoDbStoreOptions): Promise<LeaseStore> {
  const { table, prefix, clock } = checked(options, { table: NAME, prefix: NAME });
  const url = `dynamodb://${table}/${prefix}`;
  const sdk = await import('@aws-sdk/client-dynamodb').catch(requiredBy(url, '@aws-sdk/client-dynamodb'));
  const client = await createAwsClient('DYNAMODB', options, (config) => new sdk.DynamoDBClient(config));
  return observedAge(new DynamoDbLeaseStore(url, options, sdk, client), clock);
}
