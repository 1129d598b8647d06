import { afterEach, beforeEach, describe, expect, inject, it } from 'vitest';
import { type FleetStore, fleetStore, loggedAt, startTask, type Task } from '../../support/fleet.js';
import { killAll } from '../../support/processes.js';

// What a fleet is promised, on real stores with real processes. Durations are short; the bounds are those of the protocol.

const DURATION_MS = 3_000;
const GRACE_MS = 1_000;
const SETTINGS = ['--duration', '3s', '--log-level', 'debug'];

/** The process has said that it renewed: from here on the last such line is known. */
async function renewedAtLeastOnce(task: Task): Promise<void> {
  await task.waitForOutput(/lease renewed/);
}

describe.each(['file', 's3'] as const)('a fleet on the %s store', (kind) => {
  let store: FleetStore;
  beforeEach(async () => {
    store = await fleetStore(kind, inject('s3'));
  });
  afterEach(async () => {
    await killAll();
    await store.remove();
  });

  it('gives 20 processes that start at once 20 distinct ids at version 1, and the next 20 version 2', async () => {
    const ids = Array.from({ length: 20 }, (_, id) => id);
    for (const version of [1, 2]) {
      const tasks = ids.map(() => startTask(store, ['--nodes', '20', '--duration', '30s']));
      const given = await Promise.all(tasks.map((task) => task.started(60_000)));
      expect(given.map(({ id }) => id).sort((a, b) => a - b)).toEqual(ids);
      expect(given.map((one) => one.version)).toEqual(ids.map(() => version));
      expect(await store.keys()).toEqual([...ids.map((id) => `${id}.json`), 'cluster.json'].sort());
      for (const task of tasks) task.kill('SIGTERM');
      const ends = await Promise.all(tasks.map((task) => task.exit));
      expect(ends).toEqual(ids.map(() => ({ code: 143, signal: null })));
    }
  });

  it('hands the id of a killed process to a waiting one at the next version, after its lease and not much later', async () => {
    const holder = startTask(store, ['--nodes', '1', ...SETTINGS]);
    expect(await holder.started()).toEqual({ id: 0, version: 1 });
    const waiting = startTask(store, SETTINGS);
    await waiting.waitForOutput(/no node id is free/);
    await renewedAtLeastOnce(holder);
    holder.kill('SIGKILL');
    await holder.exit;
    expect(await waiting.started()).toEqual({ id: 0, version: 2 });
    const renewal = loggedAt(holder.log(), /lease renewed/, 'last');
    const takenAfter = loggedAt(waiting.log(), /acquired node id 0/) - renewal;
    // The log line is written just after the renewal was applied.
    expect(takenAfter).toBeGreaterThan(DURATION_MS - 50);
    expect(takenAfter).toBeLessThan(DURATION_MS + GRACE_MS + 2_000);
  });

  it('tells the command of a SIGTERM, gives the id back when it has ended, and a waiting task has it at once', async () => {
    const script = `trap 'echo got TERM; sleep 0.5; echo ended; exit 5' TERM; while :; do sleep 0.1; done`;
    const holder = startTask(store, ['--nodes', '1', '--duration', '30s'], script);
    expect(await holder.started()).toEqual({ id: 0, version: 1 });
    const waiting = startTask(store, ['--duration', '30s']);
    await waiting.waitForOutput(/no node id is free/);
    holder.kill('SIGTERM');
    await holder.waitForOutput(/got TERM/);
    expect(await holder.exit).toEqual({ code: 5, signal: null });
    expect(holder.stdout()).toContain('ended');
    expect(await waiting.started()).toEqual({ id: 0, version: 2 });
    const waitedMs = loggedAt(waiting.log(), /acquired node id 0/) - loggedAt(holder.log(), /lease released/);
    expect(waitedMs).toBeLessThan(kind === 'file' ? 1_000 : 2_000);
  });

  it('names a lease object that is not JSON, leaves it alone, and uses the other ids', async () => {
    await startTask(store, ['--nodes', '3', '--duration', '30s'], 'true').exit;
    await store.spoil('1.json', 'not json');
    const tasks = [startTask(store, []), startTask(store, [])];
    const given = await Promise.all(tasks.map((task) => task.started()));
    expect(given.map(({ id }) => id).sort()).toEqual([0, 2]);
    const third = startTask(store, ['--acquire-timeout', '0s']);
    expect(await third.exit).toEqual({ code: 75, signal: null });
    expect(third.stderr()).toContain('1.json cannot be used: lease object is not JSON');
    expect(await store.read('1.json')).toBe('not json');
  });
});
