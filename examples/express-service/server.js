import { once } from 'node:events';
import { setTimeout as sleep } from 'node:timers/promises';
import express from 'express';
import { acquire, NodeMonitor, uniqueIds } from 'nodelease';
import { NodeMetrics, nodeHandler } from 'nodelease/http';

const {
  NODELEASE_STORE: store,
  DATABASE = 'http://127.0.0.1:5433',
  PORT = '8080',
  DRAIN_MS = '5000',
  DURATION_MS = '15000',
} = process.env;

const stop = new AbortController();
for (const signal of ['SIGTERM', 'SIGINT']) process.once(signal, () => stop.abort());

const monitor = new NodeMonitor();
const metrics = new NodeMetrics({ monitor });
let lease;
let ids;

const app = express();
app.use('/internal', nodeHandler({ monitor, metrics }).handle);
app.use(express.json());

app.post('/orders', async (request, response) => {
  // The ids come a request to the store later than the lease. Whether that is valid costs no request: it compares clocks.
  if (!ids || !lease.isValid()) return response.status(503).json({ error: 'this process holds no node id' });
  const order = { id: String(ids.next()), node: lease.id, version: lease.version, item: request.body?.item };
  const signal = AbortSignal.timeout(5_000);
  const answer = await fetch(DATABASE, { method: 'POST', body: JSON.stringify(order), signal });
  if (answer.status === 409) return response.status(503).json(await answer.json());
  if (!answer.ok) throw new Error(`the database answered ${answer.status}`);
  response.status(201).json(order);
});

// It listens before it has a node id: health checks are answered while it waits for one.
const server = app.listen(Number(PORT), '127.0.0.1');
await once(server, 'listening');
console.log(`listens on port ${server.address().port}`);

try {
  // When the lease is lost the process ends with code 76: see `onLost` for other ways.
  lease = await acquire({ store, nodes: 16, durationMs: Number(DURATION_MS), monitor, signal: stop.signal });
  ids = await uniqueIds(lease, { signal: stop.signal });
  console.log(`node ${lease.id}, version ${lease.version}`);
  if (!stop.signal.aborted) await once(stop.signal, 'abort');
} catch (error) {
  if (!stop.signal.aborted) throw error;
}

// The order of the end: no client sends requests any more, the sent ones are answered, and only then may another process be this node.
monitor.stopping();
if (lease) await sleep(Number(DRAIN_MS));
server.close();
server.closeIdleConnections();
await once(server, 'close');
await lease?.release();
console.log('released');
