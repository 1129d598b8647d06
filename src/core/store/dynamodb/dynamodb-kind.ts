import { parsePrefix, type StoreKind, splitPath } from '../store-kind.js';
import type { DynamoDbStoreOptions } from './open-dynamodb-store.js';

/** The items of a DynamoDB table whose partition key is `prefix`. */
export const DYNAMODB: StoreKind<DynamoDbStoreOptions> = {
  schemes: ['dynamodb'],
  form: 'dynamodb://table/prefix',
  endpoint: 'a stand-in for DynamoDB',
  region: 'the DynamoDB table',
  cloudPrices: 'DynamoDB on demand, us-east-1, for items of up to 1 KB: a write of more is two',
  prices: { put: 0.000_625, get: 0.000_125 },

  parse(text, { fail }) {
    const [table, path] = splitPath(text);
    if (!/^[\w.-]{3,255}$/.test(table))
      fail('a table name of 3 to 255 letters, digits, dots, hyphens and underscores after dynamodb://');
    return { table, prefix: parsePrefix(path, DYNAMODB.form, fail, 'table') };
  },

  open: async (options) => (await import('./open-dynamodb-store.js')).openDynamoDbStore(options),
};
