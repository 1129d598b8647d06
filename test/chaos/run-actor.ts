// The command of `nodelease run`: `node run-actor.js PIPE`. Acts as fast as it can until it is ended, and
// asks no lease.

import { setTimeout as sleep } from 'node:timers/promises';
import { ActWriter, monotonicMicros } from './act.js';
import { ACT_EVERY_MS, sayActing } from './actor.js';

const [pipe = ''] = process.argv.slice(2);
const { NODE_ID, NODE_ID_VERSION, NODELEASE_TASK_ID = '' } = process.env;
const tenure = { nodeId: Number(NODE_ID), version: Number(NODE_ID_VERSION), taskId: NODELEASE_TASK_ID };
const writer = new ActWriter(pipe);
sayActing(tenure);
for (;;) {
  const now = monotonicMicros();
  if (!writer.act({ ...tenure, kind: 'run', before: now, after: now + 1 })) process.exit();
  await sleep(ACT_EVERY_MS);
}
