// A program that does it wrongly: `node careless-actor.js PIPE STORE ENDPOINT`. It takes a node id, ignores
// the loss of it, and never asks `isValid()`.

import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { pathToFileURL } from 'node:url';
import { packageRoot } from '../support/package-root.js';
import { ActWriter, monotonicMicros } from './act.js';
import { ACT_EVERY_MS, sayActing } from './actor.js';

const { acquire } = (await import(
  pathToFileURL(join(packageRoot, 'dist/index.js')).href
)) as typeof import('../../src/index.js');

const [pipe = '', store = '', endpoint = ''] = process.argv.slice(2);
const writer = new ActWriter(pipe);
const lease = await acquire({ store, endpoint, onLost: 'signal' });
const tenure = { nodeId: lease.id, version: lease.version, taskId: lease.taskId };
sayActing(tenure);
for (;;) {
  const now = monotonicMicros();
  if (!writer.act({ ...tenure, kind: 'library', before: now, after: now + 1 })) process.exit();
  await sleep(ACT_EVERY_MS);
}
