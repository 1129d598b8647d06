// A program that asks `isValid()` over and over and says each answer:
// `node asking-program.js STORE inline|worker DURATION_MS`. Each line has CLOCK_MONOTONIC in microseconds, as
// it was before the question.

import { writeSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { pathToFileURL } from 'node:url';
import { packageRoot } from '../support/package-root.js';
import { monotonicMicros } from './act.js';
import { ACT_EVERY_MS } from './actor.js';

const { acquire } = (await import(
  pathToFileURL(join(packageRoot, 'dist/index.js')).href
)) as typeof import('../../src/index.js');

const [store = '', keeper, durationMs] = process.argv.slice(2);
const lease = await acquire({
  store,
  keeper: keeper === 'worker' ? 'worker' : 'inline',
  nodes: 1,
  durationMs: Number(durationMs),
  onLost: 'signal',
});
for (;;) {
  const asked = monotonicMicros();
  writeSync(1, `${asked} ${lease.isValid() ? 'valid' : 'invalid'} ${lease.version}\n`);
  await sleep(ACT_EVERY_MS);
}
