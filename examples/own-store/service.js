// Holds a node id until it is asked to end.

import { acquire } from 'nodelease';
import { consulStore } from './consul-store.js';

const {
  CONSUL: server = 'http://127.0.0.1:8500',
  CLUSTER: prefix = 'my-service',
  NODES = '16',
  DURATION_MS = '15000',
} = process.env;

const stop = new AbortController();
for (const signal of ['SIGTERM', 'SIGINT']) process.once(signal, () => stop.abort());

const store = consulStore({ server, prefix });
const lease = await acquire({
  store,
  nodes: Number(NODES),
  durationMs: Number(DURATION_MS),
  signal: stop.signal,
}).catch((error) => {
  if (!stop.signal.aborted) throw error;
  process.exit(0);
});
console.log(`node ${lease.id}, version ${lease.version}`);

const working = setInterval(() => undefined, 1_000);
stop.signal.addEventListener('abort', async () => {
  clearInterval(working);
  await lease.release();
  await store.close();
});
