// A program that uses the library:
// `node library-actor.js PIPE STORE ENDPOINT inline|worker [ACQUIRE_TIMEOUT_MS]`. Acts while `isValid()` says
// so; SIGTERM ends it in order.

import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { pathToFileURL } from 'node:url';
import { packageRoot } from '../support/package-root.js';
import { ActWriter, monotonicMicros } from './act.js';
import { ACT_EVERY_MS, sayActing } from './actor.js';

// The library as it is built and shipped, not the sources that this program was compiled with.
const { acquire, AcquireTimeoutError, StoreUnusableError } = (await import(
  pathToFileURL(join(packageRoot, 'dist/index.js')).href
)) as typeof import('../../src/index.js');

/** The exit codes that the command line has for the same. */
const EXIT = { unforeseen: 1, storeUnusable: 69, acquireTimeout: 75, terminated: 143 };

const [pipe = '', store = '', endpoint = '', keeper, acquireTimeoutMs] = process.argv.slice(2);
const terminated = new AbortController();
process.once('SIGTERM', () => terminated.abort());
const writer = new ActWriter(pipe);

const lease = await acquire({
  store,
  ...(endpoint !== '' && { endpoint }),
  keeper: keeper === 'worker' ? 'worker' : 'inline',
  ...(acquireTimeoutMs && { acquireTimeoutMs: Number(acquireTimeoutMs) }),
  signal: terminated.signal,
  onEvent: (event) => {
    if (event.type === 'acquired')
      process.stderr.write(`${JSON.stringify({ msg: 'acquired', from: event.from })}\n`);
    if (event.type === 'lost')
      process.stderr.write(`${JSON.stringify({ msg: event.error.message, reason: event.error.reason })}\n`);
  },
}).catch((error: unknown) => {
  if (terminated.signal.aborted) process.exit(EXIT.terminated);
  process.stderr.write(`${JSON.stringify({ msg: String(error), cause: String((error as Error).cause) })}\n`);
  if (error instanceof AcquireTimeoutError) process.exit(EXIT.acquireTimeout);
  process.exit(error instanceof StoreUnusableError ? EXIT.storeUnusable : EXIT.unforeseen);
});

const tenure = { nodeId: lease.id, version: lease.version, taskId: lease.taskId };
sayActing(tenure);
while (!terminated.signal.aborted) {
  const before = monotonicMicros();
  if (lease.isValid()) {
    const after = monotonicMicros() + 1;
    if (!writer.act({ ...tenure, kind: 'library', before, after })) break;
  }
  await sleep(ACT_EVERY_MS);
}
await lease.release();
process.exit(EXIT.terminated);
