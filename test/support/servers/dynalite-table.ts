import {
  CreateTableCommand,
  DeleteItemCommand,
  DynamoDBClient,
  GetItemCommand,
  PutItemCommand,
  ScanCommand,
} from '@aws-sdk/client-dynamodb';
import type { StoreBucket } from './store-servers.js';

/** The SDK wants some; dynalite takes any. */
export const LOCAL_AWS = {
  AWS_ACCESS_KEY_ID: 'local',
  AWS_SECRET_ACCESS_KEY: 'local',
  AWS_REGION: 'local',
};

/** A client for a stand-in. */
export function localDynamoDb(endpoint: string): DynamoDBClient {
  const credentials = { accessKeyId: 'local', secretAccessKey: 'local' };
  return new DynamoDBClient({ endpoint, region: 'local', credentials });
}

/** Creates a table on dynalite. What precedes the last slash of a key is the partition. */
export async function dynaliteTable(endpoint: string, name: string): Promise<StoreBucket> {
  const client = localDynamoDb(endpoint);
  const TableName = name;
  const key = { prefix: 'HASH', object: 'RANGE' } as const;
  await client.send(
    new CreateTableCommand({
      TableName,
      BillingMode: 'PAY_PER_REQUEST',
      AttributeDefinitions: Object.keys(key).map((AttributeName) => ({ AttributeName, AttributeType: 'S' })),
      KeySchema: Object.entries(key).map(([AttributeName, KeyType]) => ({ AttributeName, KeyType })),
    }),
  );
  const at = (path: string) => {
    const cut = path.lastIndexOf('/');
    return { prefix: { S: path.slice(0, cut) }, object: { S: path.slice(cut + 1) } };
  };
  return {
    name,
    url: `dynamodb://${name}`,

    async putRaw(path, body, metadata = {}) {
      const M = Object.fromEntries(Object.entries(metadata).map(([field, S]) => [field, { S }]));
      const facts = { etag: { S: crypto.randomUUID() }, bytes: { N: String(Buffer.byteLength(body)) } };
      const Item = { ...at(path), ...facts, body: { S: body }, metadata: { M } };
      await client.send(new PutItemCommand({ TableName, Item }));
    },

    async getRaw(path) {
      const { Item } = await client.send(new GetItemCommand({ TableName, Key: at(path) }));
      if (Item === undefined) return undefined;
      const metadata = Object.entries(Item.metadata?.M ?? {}).map(([field, { S = '' }]) => [field, S]);
      const lastModified = new Date(Number.NaN);
      const { body, etag } = Item;
      return {
        body: body?.S ?? '',
        metadata: Object.fromEntries(metadata),
        etag: etag?.S ?? '',
        lastModified,
      };
    },

    async listKeys(prefix = '') {
      const { Items = [] } = await client.send(new ScanCommand({ TableName, ConsistentRead: true }));
      const paths = Items.map((item) => `${item.prefix?.S}/${item.object?.S}`);
      return paths.filter((path) => path.startsWith(prefix)).sort();
    },

    async deleteRaw(path) {
      await client.send(new DeleteItemCommand({ TableName, Key: at(path) }));
    },
  };
}
