// A stand-in for DynamoDB with an empty table: `node local-server.js PORT`, and DYNAMODB=http://127.0.0.1:PORT for the service.

import { once } from 'node:events';
import { fileURLToPath } from 'node:url';
import { CreateTableCommand, DynamoDBClient } from '@aws-sdk/client-dynamodb';
import dynalite from 'dynalite';

/** Any will do, and the SDK wants some. */
const ANY_CREDENTIALS = { region: 'local', credentials: { accessKeyId: 'local', secretAccessKey: 'local' } };

export async function startLocalServer(table, port = 0) {
  const server = dynalite({ createTableMs: 0 });
  await once(server.listen(port, '127.0.0.1'), 'listening');
  const endpoint = `http://127.0.0.1:${server.address().port}`;
  const client = new DynamoDBClient({ endpoint, ...ANY_CREDENTIALS });
  const key = { cluster: 'HASH', name: 'RANGE' };
  await client.send(
    new CreateTableCommand({
      TableName: table,
      BillingMode: 'PAY_PER_REQUEST',
      AttributeDefinitions: Object.keys(key).map((AttributeName) => ({ AttributeName, AttributeType: 'S' })),
      KeySchema: Object.entries(key).map(([AttributeName, KeyType]) => ({ AttributeName, KeyType })),
    }),
  );
  client.destroy();
  return { endpoint, close: () => server.close() };
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  const { endpoint } = await startLocalServer(process.env.TABLE ?? 'leases', Number(process.argv[2] ?? 8000));
  console.log(endpoint);
}
