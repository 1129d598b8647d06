// Says what the model says of a run: `node explain-main.js TRACES [STORE ENDPOINT]`. TRACES is a folder with a file for
// each task, one of the faults, and one of what the store has kept; with STORE that file is made first.

import { readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { CLUSTER_KEY } from '../../src/core/lease/model/cluster-config.js';
import { nodeIdOf } from '../../src/core/lease/model/lease-state.js';
import { openStore } from '../../src/core/store/open-store.js';
import { explainRun } from '../model/merged-trace.js';
import type { TaskEvent } from '../model/task-recorder.js';
import { stopsOf } from './faults.js';

const REQUEST_TIMEOUT_MS = 10_000;

const [folder = '', url = '', endpoint = ''] = process.argv.slice(2);
const kept = join(folder, 'store');
if (url !== '') writeFileSync(kept, JSON.stringify(await keptStates()));
const { settings, leases } = JSON.parse(readFileSync(kept, 'utf8'));
const names = readdirSync(folder).filter((name) => name.startsWith('task '));
const tasks = new Map(names.map((name) => [name, eventsIn(readFileSync(join(folder, name), 'utf8'))]));
const stops = stopsOf(names, JSON.parse(readFileSync(join(folder, 'faults'), 'utf8')));
console.log(JSON.stringify(explainRun(tasks, { settings, leases: new Map(leases) }, stops)));

/** A process that was killed may have left half of its last line. */
function eventsIn(text: string): TaskEvent[] {
  const lines = text.split('\n').slice(0, -1);
  return lines.map((line) => JSON.parse(line) as TaskEvent);
}

async function keptStates() {
  const store = await openStore(url, { ...(endpoint && { endpoint }), requestTimeoutMs: REQUEST_TIMEOUT_MS });
  const leases = new Map<string, string[]>();
  const settings: string[] = [];
  const wants = (key: string) => key === CLUSTER_KEY || nodeIdOf(key) !== undefined;
  const history = store.history?.('', { wants, retry: (attempt) => attempt() });
  if (history === undefined) throw new Error(`${url} does not keep what a write replaces`);
  for await (const { key, written } of history) {
    // Before it was created it was absent.
    if (written === undefined) continue;
    const states = key === CLUSTER_KEY ? settings : (leases.get(key) ?? []);
    states.unshift(written.body);
    if (key !== CLUSTER_KEY) leases.set(key, states);
  }
  await store.close();
  return { leases: [...leases], settings };
}
