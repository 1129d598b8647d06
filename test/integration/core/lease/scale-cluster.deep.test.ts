import { setTimeout as sleep } from 'node:timers/promises';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, inject, it, vi } from 'vitest';
import { IdsExhaustedError } from '../../../../src/core/id/id-time.js';
import { uniqueIds } from '../../../../src/core/id/lease-ids.js';
import type { Lease } from '../../../../src/core/lease/model/lease.js';
import { nativeCodec } from '../../../../src/core/lease/model/lease-codec.js';
import { acquire } from '../../../../src/node/runtime/acquire.js';
import { awsEnvironment } from '../../../support/bucket.js';
import { type FleetStore, fleetStore } from '../../../support/fleet.js';
import { killAll, runCli } from '../../../support/processes.js';

/** Long enough for a machine with other things to do. */
const DURATION_MS = 9_000;

/** A task of this very process, that makes unique ids for as long as it holds its node id. */
interface Task {
  readonly lease: Lease;
  readonly done: Promise<void>;
  end(): Promise<void>;
}

beforeAll(() => {
  for (const [name, value] of Object.entries(awsEnvironment(inject('s3')))) vi.stubEnv(name, value);
});
afterAll(async () => {
  await killAll();
  vi.unstubAllEnvs();
});

// Side by side: most of the time passes waiting.
describe.concurrent.each(['file', 's3'] as const)('a cluster on %s', (kind) => {
  let place: FleetStore;
  let url: string;
  let endpoint: string | undefined;
  const tasks: Task[] = [];
  const made = new Set<bigint>();
  const twice: string[] = [];

  beforeEach(async () => {
    place = await fleetStore(kind, inject('s3'));
    [, url = '', , endpoint] = place.options;
  });
  afterEach(async () => {
    await Promise.all(tasks.splice(0).map((task) => task.end()));
    await place.remove();
  });

  async function join(): Promise<Task> {
    const own = {
      nodes: 4,
      durationMs: DURATION_MS,
      onLost: 'signal',
      ...(endpoint && { endpoint }),
    } as const;
    const lease = await acquire({ store: url, ...own });
    const ids = await uniqueIds(lease);
    const ended = new AbortController();
    const make = async () => {
      while (!ended.signal.aborted && lease.isValid()) {
        try {
          const id = ids.next();
          if (made.has(id)) twice.push(`${id} of ${lease.taskId}`);
          made.add(id);
        } catch (error) {
          if (lease.isValid() && !(error instanceof IdsExhaustedError)) throw error;
        }
        await sleep(5);
      }
    };
    const done = make();
    const end = async () => {
      ended.abort();
      await done;
      await lease.release();
    };
    const task = { lease, done, end };
    tasks.push(task);
    return task;
  }

  /** From a process of its own, as an operator does it. */
  async function scale(size: number, ...more: readonly string[]): Promise<void> {
    const command = runCli(['scale', String(size), ...more, ...place.options], { env: place.env });
    const { code } = await command.exit;
    expect({ code, stderr: code === 0 ? '' : command.stderr() }).toEqual({ code: 0, stderr: '' });
  }

  const settings = async () => JSON.parse((await place.read('cluster.json')) ?? '{}') as unknown;
  const version = async (id: number): Promise<number> => {
    const state = nativeCodec.decode((await place.read(`${id}.json`)) ?? '', {});
    return state.kind === 'vacant' ? 0 : state.version;
  };

  it('goes from 4 to 300, to 8 and to 300 node ids under running holders: no version or unique id twice, no task that stays is disturbed', async () => {
    const first = [await join(), await join(), await join(), await join()];
    await scale(300);
    expect(await settings()).toMatchObject({ size: 300, idWidth: 9, generation: 1 });
    for (let i = 0; i < 8; i += 1) await join();
    const staying = tasks.filter(({ lease }) => lease.id < 8);
    const leaving = tasks.filter(({ lease }) => lease.id >= 8);
    const byId = (some: readonly Task[]) => [...some].sort((a, b) => a.lease.id - b.lease.id);
    // Which of the free ids a task gets is open: a holder that makes missing objects may be first at one.
    const states = (some: readonly Task[]) =>
      byId(some).map(({ lease }) => [
        lease.id,
        lease.version,
        lease.signal.reason?.message,
        lease.isValid(),
        lease.retiring.aborted,
      ]);
    expect(states(tasks)).toEqual(Array.from({ length: 12 }, (_, id) => [id, 1, undefined, true, false]));

    // Half of them end when they are asked to, the others do not.
    const obedient = leaving.slice(0, 2);
    for (const { lease, end } of obedient) lease.retiring.addEventListener('abort', () => void end());
    await scale(8, '--drain-timeout', `${DURATION_MS}ms`);
    expect(await settings()).toMatchObject({ size: 8, peak: 300, idWidth: 9, generation: 2 });
    expect(leaving.map(({ lease }) => lease.retiring.aborted)).toEqual([true, true, true, true]);
    expect(obedient.map(({ lease }) => lease.signal.aborted)).toEqual([false, false]);

    await scale(300);
    expect(await settings()).toMatchObject({ size: 300, idWidth: 9, generation: 3 });
    // A task that lost its id learns of it at the next renewal.
    for (const { done } of leaving) await done;
    const again = await Promise.all(Array.from({ length: 6 }, join));
    const tenures = tasks.map(({ lease }) => `${lease.id} ${lease.version}`);
    expect(new Set(tenures).size).toBe(tenures.length);
    // With the version above the one that was given back, or above the one that took it away.
    for (const { lease } of again) {
      const before = leaving.findIndex((task) => task.lease.id === lease.id);
      expect(lease.version).toBe(before < 0 ? 1 : before < 2 ? 2 : 3);
    }
    for (const [index, { lease }] of leaving.entries())
      expect(await version(lease.id)).toBeGreaterThanOrEqual(index < 2 ? 1 : 2);

    expect(states(staying)).toEqual(Array.from({ length: 8 }, (_, id) => [id, 1, undefined, true, false]));
    expect(byId(first).map(({ lease }) => lease.id)).toEqual([0, 1, 2, 3]);
    expect(await place.keys()).toHaveLength(301);
    expect(twice).toEqual([]);
    expect(made.size).toBeGreaterThan(500);
  });
});
