// A program that uses the library:
// `node library-actor.js PIPE STORE ENDPOINT inline|worker [ACQUIRE_TIMEOUT_MS [SHARDS [TRACES]]]`. Acts under its
// node id while `isValid()` says so; with SHARDS also under the shards that it owns, and under one of two locks.
// With the folder TRACES it leaves a file there of what it does with lease objects. SIGTERM ends it in order.

import { openSync, writeSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { pathToFileURL } from 'node:url';
import { TaskRecorder } from '../model/task-recorder.js';
import { packageRoot } from '../support/package-root.js';
import { ActWriter, FIRST, monotonicMicros } from './act.js';
import { ACT_EVERY_MS, sayActing } from './actor.js';

// The library as it is built and shipped, not the sources that this program was compiled with.
const built = (path: string) => import(pathToFileURL(join(packageRoot, 'dist', path)).href);
const { acquire, AcquireTimeoutError, StoreUnusableError, systemClock } = (await built(
  'index.js',
)) as typeof import('../../src/index.js');

/** The exit codes that the command line has for the same. */
const EXIT = { unforeseen: 1, storeUnusable: 69, acquireTimeout: 75, terminated: 143 };
/** As `acquire()` has it, in milliseconds. */
const REQUEST_TIMEOUT_MS = 5_000;
/** Many shards act: less often each, so that a small machine keeps up. Milliseconds. */
const SHARDS_ACT_EVERY_MS = 25;
/** How long a shard takes to stop, and how long a lock is held and left, in milliseconds at most. */
const STOP_MS = 200;
const TURN_MS = 2_000;

const [pipe = '', store = '', endpoint = '', keeper, acquireTimeoutMs, shardCount = '0', traces = ''] =
  process.argv.slice(2);
const count = Number(shardCount);
const terminated = new AbortController();
const { signal } = terminated;
process.once('SIGTERM', () => terminated.abort());
const writer = new ActWriter(pipe);
const place = {
  store,
  ...(endpoint !== '' && { endpoint }),
  keeper: keeper === 'worker' ? ('worker' as const) : ('inline' as const),
};

const recorder = traces === '' ? undefined : new TaskRecorder(() => systemClock.monotonic(), noteIn(traces));

const lease = await acquire({
  ...place,
  ...(recorder && { store: recorder.follow(await openedStore()), endpoint: undefined }),
  ...(acquireTimeoutMs && { acquireTimeoutMs: Number(acquireTimeoutMs) }),
  signal,
  onEvent: (event) => {
    if (event.type === 'acquired')
      process.stderr.write(`${JSON.stringify({ msg: 'acquired', from: event.from })}\n`);
    if (event.type === 'lost') recorder?.onLost(event.error);
    if (event.type === 'lost')
      process.stderr.write(`${JSON.stringify({ msg: event.error.message, reason: event.error.reason })}\n`);
  },
}).catch((error: unknown) => {
  if (signal.aborted) process.exit(EXIT.terminated);
  process.stderr.write(`${JSON.stringify({ msg: String(error), cause: String((error as Error).cause) })}\n`);
  if (error instanceof AcquireTimeoutError) process.exit(EXIT.acquireTimeout);
  process.exit(error instanceof StoreUnusableError ? EXIT.storeUnusable : EXIT.unforeseen);
});
recorder?.onAcquired(lease);

/** Each line is written before the task goes on: it is there whatever becomes of the task. */
function noteIn(folder: string): (event: object) => void {
  const file = openSync(join(folder, `task ${monotonicMicros()} ${process.pid}`), 'a');
  return (event) => writeSync(file, `${JSON.stringify(event)}\n`);
}

async function openedStore() {
  const { openStore } = (await built(
    'core/store/index.js',
  )) as typeof import('../../src/core/store/index.js');
  return openStore(store, { ...(endpoint !== '' && { endpoint }), requestTimeoutMs: REQUEST_TIMEOUT_MS });
}

/** What is acted under, and what is asked just before. */
interface Holding {
  readonly tenure: { readonly nodeId: number; readonly version: number; readonly taskId: string };
  readonly writer: ActWriter;
  isValid(): boolean;
}
const holdings = new Set<Holding>();

/** Acts under it until what is returned is called. */
function hold(nodeId: number, version: number, isValid: () => boolean): () => void {
  const holding = { tenure: { nodeId, version, taskId: lease.taskId }, writer: new ActWriter(pipe), isValid };
  holdings.add(holding);
  return () => {
    if (holdings.delete(holding)) holding.writer.close();
  };
}

async function takeShards(): Promise<void> {
  const { ownShards } = (await built(
    'node/shards/index.js',
  )) as typeof import('../../src/node/shards/index.js');
  await ownShards(lease, {
    count,
    start: (shard, { token, signal: ending }) => {
      const end = hold(FIRST.shard + shard, token, () => lease.isValid() && !ending.aborted);
      return async () => {
        await sleep(Math.random() * STOP_MS);
        end();
      };
    },
  });
}

/** Holds a lock and leaves it, in turns with the other tasks. */
async function takeTurns(): Promise<void> {
  const { acquireLock } = (await built(
    'node/locks/index.js',
  )) as typeof import('../../src/node/locks/index.js');
  const number = process.pid % 2;
  while (!signal.aborted) {
    try {
      const lock = await acquireLock(`lock-${number}`, { ...place, signal, durationMs: 3_000 });
      const end = hold(FIRST.lock + number, Number(lock.token), () => lock.isValid());
      await sleep(Math.random() * TURN_MS, undefined, { signal }).catch(() => undefined);
      end();
      await lock.release();
    } catch {
      // The store was away, or the lock was lost: the next turn.
    }
    await sleep(Math.random() * TURN_MS, undefined, { signal }).catch(() => undefined);
  }
}

const tenure = { nodeId: lease.id, version: lease.version, taskId: lease.taskId };
holdings.add({ tenure, writer, isValid: () => lease.isValid() });
sayActing(tenure);
const others =
  count > 0
    ? [
        takeTurns(),
        takeShards().catch((error) => lease.isValid() && !signal.aborted && Promise.reject(error)),
      ]
    : [];
const everyMs = count > 0 ? SHARDS_ACT_EVERY_MS : ACT_EVERY_MS;
let isObserved = true;
while (isObserved && !signal.aborted) {
  for (const holding of holdings) {
    const before = monotonicMicros();
    if (!holding.isValid()) continue;
    const after = monotonicMicros() + 1;
    isObserved &&= holding.writer.act({ ...holding.tenure, kind: 'library', before, after });
  }
  await sleep(everyMs);
}
await lease.release();
await Promise.all(others);
process.exit(EXIT.terminated);
