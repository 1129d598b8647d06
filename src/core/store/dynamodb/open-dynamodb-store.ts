import { checked, maybe, NAME, TEXT } from '../../base/arguments.js';
import type { LeaseStore } from '../lease-store.js';
import { observedAge } from '../observed-age.js';
import { requiredBy } from '../optional-package.js';
import { createAwsClient, repeatCredentials } from '../s3/aws-client.js';
import {
  type DynamoDbCommand,
  DynamoDbLeaseStore,
  type DynamoDbLeaseStoreOptions,
} from './dynamodb-lease-store.js';

/** Settings of {@link openDynamoDbStore}: those of the store, and how to reach the service. */
export interface DynamoDbStoreOptions extends Omit<DynamoDbLeaseStoreOptions, 'client'> {
  /**
   * The http(s) URL of a stand-in for DynamoDB.
   * @default `AWS_ENDPOINT_URL_DYNAMODB`, `AWS_ENDPOINT_URL`, else AWS
   */
  readonly endpoint?: string | undefined;
  /**
   * @default `AWS_REGION`, `AWS_DEFAULT_REGION`, the profile's region, else `us-east-1` when there is an
   * endpoint
   */
  readonly region?: string | undefined;
}

const SDK = '@aws-sdk/client-dynamodb';

/**
 * Makes a store with its own client, whose ages this process observes. Nothing is sent yet.
 *
 * @throws {ConfigError} when `@aws-sdk/client-dynamodb` is missing, and when no region is known and no endpoint
 * is given
 */
export async function openDynamoDbStore(options: DynamoDbStoreOptions): Promise<LeaseStore> {
  const { table, prefix } = checked(options, {
    table: NAME,
    prefix: NAME,
    endpoint: maybe(TEXT),
    region: maybe(TEXT),
  });
  const sdk = await import('@aws-sdk/client-dynamodb').catch(
    requiredBy(`dynamodb://${table}/${prefix}`, SDK),
  );
  const { AWS_ENDPOINT_URL_DYNAMODB, AWS_ENDPOINT_URL } = process.env;
  const endpoint = options.endpoint ?? (AWS_ENDPOINT_URL_DYNAMODB || AWS_ENDPOINT_URL || undefined);
  const client = await createAwsClient(
    { ...options, endpoint, place: 'table' },
    (config) => new sdk.DynamoDBClient(config),
  );
  const store = new DynamoDbLeaseStore({
    ...options,
    client: {
      ...repeatCredentials(client, options.clock),
      command: (operation, input) => {
        const Command = sdk[`${operation}Command`] as unknown as new (input: object) => DynamoDbCommand;
        return new Command(input);
      },
      send: (command, how) => client.send(command as never, how),
    },
  });
  return observedAge(store, options.clock);
}
