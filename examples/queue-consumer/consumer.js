// Consumes the partitions of a queue that this node owns: `nodelease run --shards 8 -- node consumer.js`.

import { mkdir, readdir, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { followShards } from './shards.js';

const { NODELEASE_URL: url, QUEUE = 'queue', SINK = 'http://127.0.0.1:7171' } = process.env;

const stop = new AbortController();
for (const signal of ['SIGTERM', 'SIGINT']) process.once(signal, () => stop.abort());

await followShards(
  url,
  (partition, token, fail) => {
    const own = new AbortController();
    const work = consume(partition, token, own.signal).catch((error) => {
      console.error(`partition ${partition}: ${error.message}`);
      void fail();
    });
    return () => {
      own.abort();
      return work;
    };
  },
  stop.signal,
);
// All work has ended: nodelease hands all partitions on, and releases the node id.

async function consume(partition, token, signal) {
  const folder = join(QUEUE, String(partition));
  await mkdir(folder, { recursive: true });
  console.log(`consumes ${partition} with token ${token}`);
  while (!signal.aborted) {
    for (const job of (await readdir(folder)).sort()) {
      if (signal.aborted) break;
      // A job stays in the queue until the sink has it. A consumer that dies in between leaves it to the next owner: the sink knows jobs by their names.
      if (await deliver(partition, token, job)) await rm(join(folder, job), { force: true });
    }
    await sleep(50);
  }
  console.log(`leaves ${partition}`);
}

/** The token goes along: the sink refuses it once a later owner has written. */
async function deliver(partition, token, job) {
  const body = JSON.stringify({ partition, token, job });
  const response = await fetch(SINK, { method: 'POST', body, signal: AbortSignal.timeout(5_000) }).catch(
    () => undefined,
  );
  if (response?.status === 409) console.log(`refused ${partition} with token ${token}`);
  return response?.ok ?? false;
}
