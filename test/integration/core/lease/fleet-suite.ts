import { setTimeout as sleep } from 'node:timers/promises';
import { afterAll, afterEach, beforeEach, describe, expect, it } from 'vitest';
import { type FleetStore, loggedAt, startTask, type Task } from '../../../support/fleet.js';
import { killAll } from '../../../support/processes.js';

const DURATION_MS = 3_000;
const GRACE_MS = 1_000;
const SETTINGS = ['--duration', '3s', '--log-level', 'debug'];

/**
 * A task's log says so before its command runs, by another stream than that of the command: either may be
 * read first.
 */
const ACQUIRED = /acquired node id 0/;

/** The process has said that it renewed: from here on the last such line is known. */
async function renewedAtLeastOnce(task: Task): Promise<void> {
  await task.waitForOutput(/lease renewed/);
}

/**
 * How soon a task that waits has an id that was given back, in milliseconds: a store reports it, or is asked
 * every 1.2 s at first.
 */
export interface FleetTiming {
  readonly releasedWithinMs: number;
}

/**
 * What a fleet is promised, with real processes on a real store. Durations are short; the bounds are those of
 * the protocol.
 *
 * @param newStore makes a store without objects; called once a test
 */
export function fleetSuite(
  name: string,
  newStore: () => Promise<FleetStore>,
  { releasedWithinMs }: FleetTiming,
): void {
  describe(`a fleet on the ${name} store`, () => {
    let store: FleetStore;
    beforeEach(async () => {
      store = await newStore();
    });
    afterEach(async () => {
      await killAll();
      await store.remove();
    });

    it('gives 20 processes that start at once 20 distinct ids at version 1, and the next 20 version 2', async () => {
      const ids = Array.from({ length: 20 }, (_, id) => id);
      for (const version of [1, 2]) {
        const tasks = ids.map(() => startTask(store, ['--nodes', '20', '--duration', '30s']));
        const given = await Promise.all(tasks.map((task) => task.started()));
        expect(given.map(({ id }) => id).sort((a, b) => a - b)).toEqual(ids);
        expect(given.map((one) => one.version)).toEqual(ids.map(() => version));
        expect(await store.keys()).toEqual([...ids.map((id) => `${id}.json`), 'cluster.json'].sort());
        for (const task of tasks) task.kill('SIGTERM');
        const ends = await Promise.all(tasks.map((task) => task.exit));
        expect(ends).toEqual(ids.map(() => ({ code: 143, signal: null })));
      }
    });

    it('passes a SIGTERM on to the command, gives the id back when it has ended, and a waiting task has it at once', async () => {
      const script = `trap 'echo got TERM; sleep 0.2; echo ended; exit 5' TERM; echo ready; while :; do sleep 0.1; done`;
      const holder = startTask(store, ['--nodes', '1', '--duration', '30s'], script);
      expect(await holder.started()).toEqual({ id: 0, version: 1 });
      await holder.waitForOutput(/^ready$/m);
      const waiting = startTask(store, ['--duration', '30s']);
      await waiting.waitForOutput(/no node id is free/);
      holder.kill('SIGTERM');
      await holder.waitForOutput(/got TERM/);
      expect(await holder.exit).toEqual({ code: 5, signal: null });
      expect(holder.stdout()).toContain('ended');
      expect(await waiting.started()).toEqual({ id: 0, version: 2 });
      await waiting.waitForOutput(ACQUIRED);
      const waitedMs = loggedAt(waiting.log(), ACQUIRED) - loggedAt(holder.log(), /lease released/);
      expect(waitedMs).toBeLessThan(releasedWithinMs);
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
}

/**
 * Who took over the id of a killed process: a task that waited for it, after its last renewal, or one that
 * starts when it had expired, after its own start.
 */
export type TakeOver = 'waiting' | 'starting';

/**
 * When the id of a killed process is taken over, with real processes on a real store.
 *
 * @param report gets how long each took, in milliseconds
 */
export function takeOverSuite(
  name: string,
  newStore: () => Promise<FleetStore>,
  report?: (by: TakeOver, ms: number) => void,
): void {
  const stores: FleetStore[] = [];
  // After all suites around: it ends every process.
  afterAll(async () => {
    await killAll();
    for (const store of stores) await store.remove();
  });
  describe.concurrent(`a killed process on the ${name} store`, () => {
    const ownStore = async () => {
      const store = await newStore();
      stores.push(store);
      return store;
    };

    it('leaves its id to a waiting one at the next version, after its lease and not much later', async ({
      expect,
    }) => {
      const store = await ownStore();
      const holder = startTask(store, ['--nodes', '1', ...SETTINGS]);
      expect(await holder.started()).toEqual({ id: 0, version: 1 });
      const waiting = startTask(store, SETTINGS);
      await waiting.waitForOutput(/no node id is free/);
      await renewedAtLeastOnce(holder);
      holder.kill('SIGKILL');
      await holder.exit;
      expect(await waiting.started()).toEqual({ id: 0, version: 2 });
      await waiting.waitForOutput(ACQUIRED);
      const renewal = loggedAt(holder.log(), /lease renewed/, 'last');
      const takenAfter = loggedAt(waiting.log(), ACQUIRED) - renewal;
      report?.('waiting', takenAfter);
      // The log line is written just after the renewal was applied.
      expect(takenAfter).toBeGreaterThan(DURATION_MS - 50);
      expect(takenAfter).toBeLessThan(DURATION_MS + GRACE_MS + 2_000);
    });

    // It tells neither ages nor, as etcd does by its marks, that a lease is old enough.
    const isObserved = name === 'dynamodb';
    const soon = isObserved ? 'once it has seen it for as long' : 'at once';
    it(`leaves its id to one that starts when the lease has expired, ${soon}`, async ({ expect }) => {
      const store = await ownStore();
      const holder = startTask(store, ['--nodes', '1', ...SETTINGS]);
      expect(await holder.started()).toEqual({ id: 0, version: 1 });
      holder.kill('SIGKILL');
      await holder.exit;
      // Nothing is watching it meanwhile. Ages may be reported in whole seconds, and etcd removes a mark some
      // seconds later.
      await sleep(DURATION_MS + GRACE_MS + 4_000);
      const heir = startTask(store, SETTINGS);
      expect(await heir.started()).toEqual({ id: 0, version: 2 });
      await heir.waitForOutput(ACQUIRED);
      const begun = heir.log()[0]?.at ?? Number.NaN;
      const takenAfter = loggedAt(heir.log(), ACQUIRED) - begun;
      report?.('starting', takenAfter);
      if (isObserved) expect(takenAfter).toBeGreaterThan(DURATION_MS + GRACE_MS);
      // Else less than it takes to observe that it has expired.
      expect(takenAfter).toBeLessThan(isObserved ? DURATION_MS + GRACE_MS + 2_000 : DURATION_MS);
    });
  });
}
