import { beforeEach, describe, expect, it } from 'vitest';
import {
  CAMUNDA_MARKER,
  type CamundaObject,
  camundaFree,
  camundaHeld,
  camundaReleased,
  camundaRestore,
} from '../../../test/support/camunda-objects.js';
import { capturedIo } from '../../../test/support/captured-io.js';
import { seededRandom, VirtualClock } from '../../../test/support/virtual-clock.js';
import { StoreSession } from '../../core/lease/session/store-session.js';
import { MemoryBucket } from '../../core/store/memory/memory-bucket.js';
import { MemoryLeaseStore } from '../../core/store/memory/memory-lease-store.js';
import { examine, showDiagnosis } from '../cli/doctor/doctor-command.js';

let clock: VirtualClock;
let bucket: MemoryBucket;
let written: string[];

beforeEach(() => {
  clock = new VirtualClock();
  bucket = new MemoryBucket(clock, 1_000);
  written = [];
});

function put({ key, body, metadata }: CamundaObject): void {
  bucket.remove(key);
  bucket.create(key, body, metadata);
}

function hold(id: number, taskId: string, aheadMs = 0): void {
  put(camundaHeld({ id, taskId, version: 1, timestamp: clock.now() + 15_000 + aheadMs }));
}

/** What `doctor` says, while time passes that it waits for. */
async function examined(json = false) {
  const store = new MemoryLeaseStore({ clock, resolutionMs: 1_000 }, bucket).connect(async (call, apply) => {
    if (call.operation !== 'read' && call.operation !== 'list') written.push(call.operation);
    return apply();
  });
  const result = examine(new StoreSession(store, clock, 1_000), { random: seededRandom(1), clock });
  await clock.advance(20_000);
  const io = capturedIo();
  const code = showDiagnosis(await result, { json }, io);
  expect(written).toEqual([]);
  return { code, answer: io.answer() };
}

describe('nodelease doctor of a cluster of Camunda 8', () => {
  it('finds nothing in a sound one, and writes nothing', async () => {
    hold(0, 'task-A');
    hold(1, 'task-B');
    put(camundaReleased(2, 4));
    put(camundaReleased(3, 4, false));
    put(CAMUNDA_MARKER);
    put(camundaRestore('r1', [0, 1]));
    const { code, answer } = await examined();
    expect(code).toBe(0);
    expect(answer).toBe(
      [
        'The store memory:',
        '  ok     format: Camunda 8: its cluster is looked at, and nothing is written, tried out or repaired',
        '  ok     clock: agrees with that of this host',
        '  ok     cluster: 4 node ids, 2 of them held; leases of about 15s, as the holders’ times tell',
        '  ok     lease objects: Camunda can read all of them',
        '  ok     restore r1: node ids restored: 0, 1',
        'All is well.',
        '',
      ].join('\n'),
    );
  });

  it('names what Camunda cannot read, gaps and what is lost by them, and advises no repair', async () => {
    hold(0, 'task-A');
    put({ ...camundaFree(1), body: '{}' });
    put(camundaFree(3));
    put(CAMUNDA_MARKER);
    const { code, answer } = await examined();
    expect(code).toBe(69);
    expect(answer).toContain(
      '  FAULT  gaps: node id 2 has no object: Camunda tries as many node ids from 0 on as there are objects, so that the highest ones are never taken\n',
    );
    expect(answer).toMatch(
      / {2}FAULT {2}lease objects: node id 1: lease object has no usable "taskId": .*: Camunda cannot read it\n/,
    );
    expect(answer).not.toContain('--repair');
  });

  it('warns of holders whose clocks disagree, of a body of another node id, and of a marker that is missing', async () => {
    for (const [id, ahead] of [0, 20_000, 0, -5_000].entries()) hold(id, `task-${id}`, ahead);
    put({
      ...camundaHeld({ id: 9, taskId: 'lost', version: 1, timestamp: clock.now() + 15_000 }),
      key: '4.json',
    });
    const { code, answer } = await examined();
    expect(code).toBe(0);
    expect(answer).toMatch(
      / {2}warn {3}holders: node id 1 \(task-1\): its holder’s clock is \d+ s ahead of the other holders’/,
    );
    expect(answer).toMatch(
      / {2}warn {3}holders: node id 3 \(task-3\): its holder’s clock is \d s behind the other holders’/,
    );
    expect(answer).toContain('  warn   holders: node id 4 (lost): its body says node id 9');
    expect(answer).toContain('  warn   marker: node-ids-initialized is missing');
    expect(answer).toMatch(/No faults, 4 warnings\.\n$/);
  });

  it('looks twice where a lease has expired: a fault where it is renewed all the same, nothing where its holder has gone', async () => {
    hold(0, 'task-A');
    put(camundaHeld({ id: 1, taskId: 'late', version: 1, timestamp: clock.now() - 1_000 }));
    put(camundaHeld({ id: 2, taskId: 'gone', version: 1, timestamp: clock.now() - 2_000 }));
    put(CAMUNDA_MARKER);
    await clock.advance(1_000);
    void clock
      .sleep(3_000)
      .then(() => put(camundaHeld({ id: 1, taskId: 'late', version: 1, timestamp: clock.now() - 1_000 })));
    const { code, answer } = await examined();
    expect(code).toBe(69);
    expect(answer).toContain(
      '  FAULT  renewals: node id 1: late renews its lease after it has expired, so that another task may take it',
    );
    expect(answer).not.toMatch(/renewals: node id 2/);
  });

  it('has the same as JSON', async () => {
    hold(0, 'task-A');
    put({ ...camundaFree(1), body: '[]' });
    put(CAMUNDA_MARKER);
    const { answer } = await examined(true);
    expect(JSON.parse(answer)).toMatchObject({
      ...{ store: 'memory:', ok: false, latencyMs: null, cost: null, zookeeper: null },
      cluster: { size: 2, durationMs: 15_000, graceMs: 0, idWidth: null, bootstrapped: true },
      damaged: [{ id: 1, problem: 'lease object is not a JSON object' }],
    });
  });
});
