import { describe, expect, it } from 'vitest';
import { explainRun } from '../model/merged-trace.js';
import type { TaskEvent } from '../model/task-recorder.js';
import { stopsOf } from './faults.js';
import type { ChaosResult } from './run-chaos.js';
import { failuresOf } from './summary.js';
import type { FaultRecord } from './trouble.js';

const DURATION_MS = 3_000;
const GRACE_MS = 1_000;
const PID = 77;
const pause: FaultRecord = {
  ...{ name: 'pause of the process', at: 2_000_000, lengthMs: 1_900 },
  ...{ slot: 3, taskId: 'one', pid: PID },
};

const held = (renewal: number) =>
  JSON.stringify({ taskId: 'one', version: 1, durationMs: DURATION_MS, nonce: 'n', renewal });

/** A task that gets a lease at 1 s and renews it at 3.9 s, past the stop point at 3.5 s. */
const late: readonly TaskEvent[] = (
  [
    { kind: 'asks', request: 1, at: 900 },
    { kind: 'hears', request: 1, answer: 'read', body: '', etag: 'e0', age: 0, at: 950 },
    { kind: 'sends', request: 2, body: held(0), etag: 'e0', at: 1_000 },
    { kind: 'hears', request: 2, answer: 'written', etag: 'e1', at: 1_050 },
    { kind: 'holds', until: 4_000, at: 1_060 },
    { kind: 'sends', request: 3, body: held(1), etag: 'e1', until: 4_000, at: 3_900 },
    { kind: 'hears', request: 3, answer: 'written', etag: 'e2', until: 6_900, at: 3_950 },
  ] as const
).map((event) => ({ key: '0.json', ...event }));

/** A run in which nothing was wrong but perhaps this. */
function failures({ faults, ...change }: Partial<ChaosResult> & Pick<ChaosResult, 'faults'>): string[] {
  const tasks = new Map([[`task 900 ${PID}`, late]]);
  const kept = {
    settings: [JSON.stringify({ durationMs: DURATION_MS, graceMs: GRACE_MS })],
    leases: new Map([['0.json', ['', held(0), held(1)]]]),
  };
  return failuresOf({
    ...{ elapsedMs: 0, lengthMs: 0, ids: 1, shards: 0, durationMs: DURATION_MS, graceMs: GRACE_MS },
    ...{ faults, ends: [], specs: [], late: [], storeProblems: [], storeLooks: 0, leftovers: 0 },
    findings: { acts: 0, tenures: [], violations: [], lost: 0, disordered: 0, late: 0 },
    audit: undefined,
    explanation: explainRun(tasks, kept, stopsOf([...tasks.keys()], faults)),
    ...change,
  });
}

describe('a traced run', () => {
  it('passes with a renewal past the stop point behind a pause of its process', () => {
    expect(failures({ faults: [pause] })).toEqual([]);
  });

  it.each<readonly [string, FaultRecord]>([
    ['of another process', { ...pause, pid: PID + 100 }],
    ['before the last event of its process', { ...pause, at: 500_000, lengthMs: 200 }],
    ['of nothing but its network', { ...pause, name: 'stall both ways' }],
  ])('fails with one behind a pause %s', (_, fault) => {
    expect(failures({ faults: [fault] })).toEqual([
      expect.stringMatching(/^no path of the model: 0\.json: task 900 77 sends a renewal of version 1/),
    ]);
  });

  it('fails where no lease was traced', () => {
    const nothing = explainRun(new Map(), { settings: [], leases: new Map() });
    expect(failures({ faults: [pause], explanation: nothing })).toEqual(['no lease was traced to the end']);
  });
});
