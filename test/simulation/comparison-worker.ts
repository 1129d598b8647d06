// The thread that simulates for the comparison. A planted tree has a copy of its own of this file.

import { parentPort } from 'node:worker_threads';
import type { ComparedFaults } from './comparison/compared-faults.js';
import { compareUnder } from './comparison/comparison-cell.js';
import { ENGINES } from './engines.js';
import { useQuickAbort } from './world/quick-abort.js';

/** One cell to be found out; the answer is a `Cell`. */
export interface CellOrder {
  readonly faults: ComparedFaults;
  /** A name out of `ENGINES`. */
  readonly engine: string;
  readonly from: number;
  readonly seeds: number;
}

// Nothing in a simulation reads stack traces, and the many errors that it is made of would spend most of
// their time on them.
Error.stackTraceLimit = 0;
useQuickAbort();

const port = parentPort;
if (port === null) throw new Error('comparison-worker is the code of a worker thread');
port.on('message', async ({ faults, engine: name, ...range }: CellOrder) => {
  const engine = ENGINES[name];
  if (engine === undefined) throw new Error(`there is no engine ${name}`);
  port.postMessage(await compareUnder(faults, engine, range));
});
