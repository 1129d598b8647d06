// Holds a node id until it is asked to end.

import { acquire } from 'nodelease';
import { dynamoDbStore } from './dynamodb-store.js';

const {
  TABLE = 'leases',
  CLUSTER = 'my-service',
  DYNAMODB: endpoint,
  NODES = '16',
  DURATION_MS = '15000',
} = process.env;

const stop = new AbortController();
for (const signal of ['SIGTERM', 'SIGINT']) process.once(signal, () => stop.abort());

const store = dynamoDbStore({ table: TABLE, cluster: CLUSTER, endpoint });
const lease = await acquire({
  store,
  nodes: Number(NODES),
  durationMs: Number(DURATION_MS),
  signal: stop.signal,
});
console.log(`node ${lease.id}, version ${lease.version}`);

const working = setInterval(() => undefined, 1_000);
stop.signal.addEventListener('abort', async () => {
  clearInterval(working);
  await lease.release();
  await store.close();
});
