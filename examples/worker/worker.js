// Works off the jobs of one shard: those whose number, divided by the number of shards, leaves its node id as the rest.

import { mkdir, open, readdir, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { acquire } from 'nodelease';

const {
  NODELEASE_STORE: store,
  QUEUE = 'queue',
  SENT = 'sent',
  SHARDS = '2',
  DURATION_MS = '15000',
} = process.env;
const shards = Number(SHARDS);

const stop = new AbortController();
for (const signal of ['SIGTERM', 'SIGINT']) process.once(signal, () => stop.abort());

await mkdir(QUEUE, { recursive: true });
await mkdir(SENT, { recursive: true });

// A job may keep the event loop busy for longer than the lease lasts: it is renewed in a thread of its own. When it is lost, the process
// ends with code 76.
const lease = await acquire({
  store,
  nodes: shards,
  durationMs: Number(DURATION_MS),
  keeper: 'worker',
  signal: stop.signal,
}).catch((error) => {
  if (!stop.signal.aborted) throw error;
  // It was asked to end while all shards were held: there is nothing to give back.
  process.exit(0);
});
console.log(`shard ${lease.id}, version ${lease.version}`);

while (!stop.signal.aborted) {
  for (const job of await jobsOfMine()) {
    // Asked right before the act, and answered by comparing clocks: a process that was paused learns here that the shard is no longer its own.
    if (stop.signal.aborted || !lease.isValid()) break;
    await send(job);
    await rm(join(QUEUE, job), { force: true });
    console.log(`sent ${job}`);
  }
  await sleep(100, undefined, { signal: stop.signal }).catch(() => undefined);
}

// The work has ended: only now may somebody else have the shard.
await lease.release();

async function jobsOfMine() {
  const jobs = await readdir(QUEUE);
  return jobs
    .filter((job) => Number.parseInt(job, 10) % shards === lease.id)
    .sort((a, b) => Number.parseInt(a, 10) - Number.parseInt(b, 10));
}

/**
 * The act that must not happen twice: it stands for a payment, a mail, a call of somebody else's service. It carries the version, so that its
 * receiver can refuse a holder that is older than the newest one it has seen; and the job's name, by which a receiver knows what it has done
 * already. The latter is needed whatever there is for a lease: a worker may die between an act and the note that it is done.
 */
async function send(job) {
  const letter = await open(join(SENT, job), 'wx').catch((error) => {
    if (error.code !== 'EEXIST') throw error;
  });
  await letter?.writeFile(JSON.stringify({ job, shard: lease.id, version: lease.version }));
  await letter?.close();
}
