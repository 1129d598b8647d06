import { beforeAll, describe, expect, it } from 'vitest';
import { useQuickAbort } from '../../../../test/simulation/world/quick-abort.js';
import { inVirtualTime, seededRandom, VirtualClock } from '../../../../test/support/virtual-clock.js';
import { explain } from '../../base/errors.js';
import { StoreError } from '../../store/lease-store.js';
import { MemoryBucket } from '../../store/memory/memory-bucket.js';
import { type MemoryIntercept, MemoryLeaseStore } from '../../store/memory/memory-lease-store.js';
import { decodeCluster, encodeCluster, newCluster } from '../model/cluster-config.js';
import type { Lease, LeaseEvent } from '../model/lease.js';
import { StoreSession } from '../session/store-session.js';
import { acquireLease } from './acquire-lease.js';
import { ensureCluster } from './ensure-cluster.js';

// Hundreds of tasks start at once on a bucket that no task has probed yet. A probe is some 400 requests, and
// one probe is enough.

// The event objects of so many would take a third of the time.
beforeAll(useQuickAbort);

const STARTERS = 300;
const MINUTE_MS = 60_000;

interface Shape {
  /** Minimum and maximum time of a request, in milliseconds. */
  readonly latencyMs: readonly [number, number];
  /** Whether the first task that probes dies. */
  readonly firstProberDies?: boolean;
  /** Whether the settings exist already, without a finished probe. */
  readonly created?: boolean;
  readonly starters?: number;
}

/** Starts all tasks, and returns which tasks probed, and all requests. */
async function storm({
  latencyMs: [least, most],
  firstProberDies = false,
  created = false,
  starters = STARTERS,
}: Shape) {
  const clock = new VirtualClock();
  const bucket = new MemoryBucket(clock, 1_000);
  const settings = { nodes: STARTERS, durationMs: 3_600_000 };
  if (created) bucket.create('cluster.json', encodeCluster({ ...newCluster(settings), proven: false }), {});
  const probers = new Set<number>();
  let requests = 0;
  const random = seededRandom(7);
  const start = (task: number): Promise<Lease> => {
    const network: MemoryIntercept = async (call, apply) => {
      requests += 1;
      const latencyMs = least + random.next() * (most - least);
      await clock.sleep(latencyMs / 2);
      if (call.operation !== 'list' && call.key.startsWith('probe-')) probers.add(task);
      if (firstProberDies && [...probers][0] === task) return new Promise<never>(() => undefined);
      const reply = apply();
      await clock.sleep(latencyMs / 2);
      return reply;
    };
    const store = new MemoryLeaseStore({ clock, remote: true, intercept: network }, bucket);
    return acquireLease({
      store,
      clock,
      random: seededRandom(task + 1),
      taskId: `task-${task}`,
      ...settings,
    });
  };
  const ids: number[] = [];
  const failures: unknown[] = [];
  for (let task = 0; task < starters; task += 1) {
    start(task).then(
      ({ id }) => ids.push(id),
      (error) => failures.push(error),
    );
  }
  for (let minute = 0; minute < 60 && ids.length + failures.length < starters; minute += 1)
    await clock.advance(MINUTE_MS);
  return {
    ids: ids.sort((a, b) => a - b),
    failures,
    probers: probers.size,
    requestsATask: requests / starters,
  };
}

const ALL = Array.from({ length: STARTERS }, (_, id) => id);

describe('of 300 tasks that start together in an empty bucket', () => {
  it.each([
    ['one probes a quick store', [20, 60], 1],
    // No task can distinguish a slow prober from a dead one. The others wait for a quarter of a minute, and
    // twice as long each time.
    ['no more than a few probe a store that takes seconds to answer', [1_000, 2_000], 4],
  ] as const)('%s, and all get an id', async (_, latencyMs, most) => {
    const { ids, probers, requestsATask } = await storm({ latencyMs });
    expect(ids).toEqual(ALL);
    expect(probers).toBeLessThanOrEqual(most);
    expect(requestsATask).toBeLessThan(30);
  });

  it.each([
    [[20, 60], 2],
    [[1_000, 2_000], 4],
  ] as const)(
    'another task takes the probe over when the first one dies during it, with replies after %s ms',
    async (latencyMs, most) => {
      const { ids, probers, failures } = await storm({ latencyMs, firstProberDies: true });
      expect(ids).toHaveLength(STARTERS - 1);
      expect(failures).toHaveLength(1);
      expect(probers).toBeGreaterThan(1);
      expect(probers).toBeLessThanOrEqual(most);
    },
  );
});

it('no more than a few of 300 tasks take over a probe that was left unfinished long ago', async () => {
  const { ids, probers } = await storm({ latencyMs: [1_000, 2_000], created: true });
  expect(ids).toEqual(ALL);
  expect(probers).toBeLessThanOrEqual(4);
});

it('a lone starter has an id within a minute on a store with an unfinished probe', async () => {
  const { ids, probers } = await storm({ latencyMs: [20, 60], created: true, starters: 1 });
  expect({ ids, probers }).toEqual({ ids: [0], probers: 1 });
});

describe('a store that loses races now and then', () => {
  const settings = { nodes: 2, durationMs: 15_000 };

  /** Accepts replaces of scratch objects with any etag while it loses races. */
  function scene(onProbe = () => {}) {
    const clock = new VirtualClock();
    const bucket = new MemoryBucket(clock, 1);
    const luck = { losesRaces: true, probed: 0 };
    class RacingStore extends MemoryLeaseStore {
      override async replace(
        key: string,
        body: string,
        metadata: Readonly<Record<string, string>>,
        etag: string,
      ) {
        if (!key.startsWith('probe-')) return super.replace(key, body, metadata, etag);
        luck.probed += 1;
        onProbe();
        return bucket.replace(key, body, metadata, luck.losesRaces ? (bucket.read(key)?.etag ?? '') : etag);
      }
    }
    const store = new RacingStore({ clock, remote: true }, bucket);
    const start = () => acquireLease({ store, clock, random: seededRandom(1), taskId: 'task', ...settings });
    const session = new StoreSession(store, clock, 4_000);
    const ensure = (thorough: boolean) =>
      ensureCluster({ session, clock, random: seededRandom(1), wanted: settings, thorough });
    const kept = () => decodeCluster(bucket.read('cluster.json')?.body ?? '');
    return { clock, bucket, luck, start, ensure, kept };
  }

  it('is refused by every later start with the reason of the first probe, without another probe', async () => {
    const { luck, start, kept } = scene();
    await expect(start()).rejects.toThrow(
      /cannot be trusted with leases: .*replace-if-unchanged is not atomic/,
    );
    expect(kept()).toMatchObject({
      proven: false,
      proofFailed: expect.stringMatching(
        /^(ignores [^;]*; ){2}[^;]* is not atomic: 12 of 12 races were lost[^;]*$/,
      ),
    });
    Object.assign(luck, { losesRaces: false, probed: 0 });
    for (let again = 0; again < 3; again += 1) {
      await expect(start()).rejects.toMatchObject({
        code: 'STORE_UNSAFE',
        message: expect.stringMatching(
          /as an earlier probe has found: .*12 of 12 races were lost.*nodelease doctor --accept/,
        ),
      });
    }
    expect(luck.probed).toBe(0);
  });

  it('is used again when a far longer probe has found no fault, and not before', async () => {
    const { clock, luck, start, ensure, kept } = scene();
    await expect(start()).rejects.toThrow('is not atomic');
    const thoroughly = async () => {
      const ensured = ensure(true);
      ensured.catch(() => undefined);
      // So long ages are watched.
      await clock.advance(10_000);
      return ensured;
    };
    await expect(thoroughly()).rejects.toThrow('100 of 100 races were lost');
    Object.assign(luck, { losesRaces: false, probed: 0 });
    await thoroughly();
    expect(luck.probed).toBeGreaterThan(400);
    expect(kept()).toMatchObject({ proven: true });
    expect(kept().proofFailed).toBeUndefined();
    const lease = await start();
    expect(lease.version).toBe(1);
    await lease.release();
  });

  it('is refused even if another probe at the same time has passed', async () => {
    const { bucket, start, kept } = scene(() => {
      const { body = '', etag = '' } = bucket.read('cluster.json') ?? {};
      if (!decodeCluster(body).proven)
        bucket.replace(
          'cluster.json',
          encodeCluster({ ...decodeCluster(body), proven: true }, body),
          {},
          etag,
        );
    });
    await expect(start()).rejects.toThrow('is not atomic');
    expect(kept()).toMatchObject({ proven: false, proofFailed: expect.stringContaining('is not atomic') });
  });
});

it('the first start reports the test of the store before it, and no later one', async () => {
  const clock = new VirtualClock();
  const bucket = new MemoryBucket(clock, 1);
  const tested: unknown[] = [];
  for (const taskId of ['first', 'second']) {
    const store = new MemoryLeaseStore({ clock, remote: true }, bucket);
    const onEvent = (event: LeaseEvent) => event.type === 'testing-store' && tested.push({ taskId, event });
    const settings = { nodes: 2, durationMs: 15_000, onEvent };
    await acquireLease({ store, clock, random: seededRandom(1), taskId, ...settings });
  }
  expect(tested).toEqual([{ taskId: 'first', event: { type: 'testing-store', store: 'memory:' } }]);
});

describe('the very first start, on a store that is away for a moment', () => {
  const settings = { nodes: 2, durationMs: 15_000 };

  /**
   * Starts a task. `fails` decides which of its requests fail, by their number from 0 on and the time since
   * the start.
   */
  async function started(fails: (request: number, atMs: number) => boolean, acquireTimeoutMs?: number) {
    const clock = new VirtualClock();
    let requests = 0;
    const begun = clock.monotonic();
    const store = new MemoryLeaseStore({
      clock,
      remote: true,
      intercept: async (_, apply) => {
        await clock.sleep(5);
        if (fails(requests++, clock.monotonic() - begun)) {
          throw new StoreError('answered HTTP 503', { fault: 'unavailable', outcome: 'unknown' });
        }
        return apply();
      },
    });
    const task = acquireLease({
      store,
      clock,
      random: seededRandom(1),
      taskId: 'task',
      ...settings,
      acquireTimeoutMs,
    });
    let endedMs: number | undefined;
    const outcome = task.then(
      (lease) => lease.release().then(() => 'acquired'),
      (error) => explain(error),
    );
    void outcome.then(() => {
      endedMs = clock.monotonic() - begun;
    });
    for (let second = 0; second < 120 && endedMs === undefined; second += 1) await clock.advance(1_000);
    return { outcome: await outcome, endedMs };
  }

  it.each([undefined, 0])(
    'gets an id whichever of its requests is answered 503, with %s ms to wait for holders',
    async (acquireTimeoutMs) => {
      for (let failing = 0; failing < 60; failing += 1) {
        const outcome = await started((request) => request === failing, acquireTimeoutMs);
        expect({ failing, ...outcome }).toMatchObject({ failing, outcome: 'acquired' });
      }
    },
  );

  it('probes without waiting for others where only the reply to the creation of the cluster is lost', async () => {
    const clock = new VirtualClock();
    let isLost = false;
    const intercept: MemoryIntercept = async (call, apply) => {
      await clock.sleep(30);
      const reply = apply();
      if (isLost || call.operation !== 'create') return reply;
      isLost = true;
      throw new StoreError('reply lost', { fault: 'unreachable', outcome: 'unknown' });
    };
    const store = new MemoryLeaseStore({ clock, remote: true, intercept });
    const task = { store, clock, random: seededRandom(1), taskId: 'task', acquireTimeoutMs: 0 };
    const lease = await inVirtualTime(clock, acquireLease({ ...task, ...settings }));
    expect(lease.id).toBe(0);
    expect(clock.monotonic()).toBeLessThan(4_000);
  });

  it('waits for the store as long as for an id', async () => {
    const away = (_: number, atMs: number) => atMs > 50 && atMs < 40_000;
    expect(await started(away)).toMatchObject({ outcome: 'acquired' });
    const { outcome, endedMs } = await started(away, 20_000);
    expect(outcome).toContain('503');
    expect(endedMs).toBeGreaterThan(10_000);
    expect(endedMs).toBeLessThan(25_000);
  });
});

describe('a store that refuses to create the settings as if they were there, and shows none', () => {
  async function started(refuses: (key: string) => boolean) {
    const clock = new VirtualClock();
    class RefusingStore extends MemoryLeaseStore {
      override async create(key: string, body: string, metadata: Readonly<Record<string, string>>) {
        return refuses(key) ? ({ status: 'conflict' } as const) : super.create(key, body, metadata);
      }
    }
    const store = new RefusingStore({ clock, remote: true }, new MemoryBucket(clock, 1));
    const settings = { nodes: 2, durationMs: 15_000, acquireTimeoutMs: 0 };
    const failure = acquireLease({
      store,
      clock,
      random: seededRandom(1),
      taskId: 'task',
      ...settings,
    }).catch((error) => error);
    await inVirtualTime(clock, failure);
    return failure;
  }

  it('is refused with the finding of the probe, after some attempts', async () => {
    const failure = await started(() => true);
    expect(failure).toMatchObject({
      code: 'STORE_UNSAFE',
      message: expect.stringContaining('refused to create keys that had never been used'),
    });
  });

  it('is refused even if the probe finds no fault', async () => {
    const failure = await started((key) => key === 'cluster.json');
    expect(failure).toMatchObject({
      code: 'STORE_UNSAFE',
      message: expect.stringContaining('refuses to create cluster.json'),
    });
  });
});
