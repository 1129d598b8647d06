// Holds no lease and knows nothing of nodelease but a URL: the sidecar next to it, `nodelease serve`, holds the node id for it.

import { readFile } from 'node:fs/promises';
import { setTimeout as sleep } from 'node:timers/promises';

const { SIDECAR = 'http://127.0.0.1:7070', EVERY_MS = '1000', TOKEN_FILE } = process.env;

const stop = new AbortController();
for (const signal of ['SIGTERM', 'SIGINT']) process.once(signal, () => stop.abort());

/** What the sidecar says of the lease, and until when that may be believed; undefined unless it is valid. */
async function ask() {
  // Taken before the question is sent: however long the answer takes, it is never believed for too long.
  const asked = performance.now();
  try {
    // Read again each time: tokens are replaced while programs run.
    const headers = TOKEN_FILE
      ? { authorization: `Bearer ${(await readFile(TOKEN_FILE, 'utf8')).trim()}` }
      : {};
    const answer = await fetch(`${SIDECAR}/lease`, { headers, signal: AbortSignal.timeout(1_000) });
    if (!answer.ok) return undefined;
    const { nodeId, version, validForMs } = await answer.json();
    // A fixed node id, as of a StatefulSet, is valid without an end: null.
    return { nodeId, version, validUntil: asked + (validForMs ?? Number.POSITIVE_INFINITY) };
  } catch {
    return undefined;
  }
}

let held;
while (!stop.signal.aborted) {
  const lease = await ask();
  if (lease?.nodeId !== held?.nodeId || lease?.version !== held?.version) {
    console.log(lease ? `node ${lease.nodeId}, version ${lease.version}` : 'no node id');
  }
  held = lease;
  if (lease && performance.now() < lease.validUntil)
    console.log(`works as node ${lease.nodeId}, version ${lease.version}`);
  await sleep(Number(EVERY_MS), undefined, { signal: stop.signal }).catch(() => undefined);
}
console.log('ended');
