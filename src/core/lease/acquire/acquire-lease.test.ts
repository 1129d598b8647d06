import { describe, expect, it } from 'vitest';
import { seededRandom, VirtualClock } from '../../../../test/support/virtual-clock.js';
import { AcquireTimeoutError, ConfigError } from '../../base/errors.js';
import { StoreError } from '../../store/lease-store.js';
import { MemoryBucket } from '../../store/memory/memory-bucket.js';
import {
  type MemoryCall,
  type MemoryIntercept,
  MemoryLeaseStore,
} from '../../store/memory/memory-lease-store.js';
import { encodeCluster, newCluster } from '../model/cluster-config.js';
import type { Lease, LeaseEvent } from '../model/lease.js';
import { acquireLease } from './acquire-lease.js';

const DURATION = 15_000;
const GRACE = 1_000;

/** A cluster on a memory store in virtual time. */
function cluster(options: { nodes?: number; resolutionMs?: number } = {}) {
  const clock = new VirtualClock();
  const bucket = new MemoryBucket(clock, options.resolutionMs ?? 1);
  const store = new MemoryLeaseStore({ clock }, bucket);
  let tasks = 0;
  const start = (own: Partial<Parameters<typeof acquireLease>[0]> & { intercept?: MemoryIntercept } = {}) => {
    const { intercept, ...rest } = own;
    const events: LeaseEvent[] = [];
    tasks += 1;
    const lease = acquireLease({
      store: intercept === undefined ? store.connect() : store.connect(intercept),
      clock,
      random: seededRandom(tasks),
      taskId: `task-${tasks}`,
      nodes: options.nodes ?? 3,
      durationMs: DURATION,
      graceMs: GRACE,
      onEvent: (event) => events.push(event),
      ...rest,
    });
    lease.catch(() => undefined);
    return { lease, events };
  };
  return { clock, store, bucket, start };
}

async function body(store: MemoryLeaseStore, key: string): Promise<Record<string, unknown>> {
  return JSON.parse((await store.read(key))?.body ?? 'null');
}

describe('acquiring', () => {
  it('waits for a free id with a first pause as long as configured', async () => {
    const { start, store, clock } = cluster({ nodes: 1 });
    await start().lease;
    const { events } = start({
      store: Object.assign(store.connect(), { changed: undefined }),
      waitPollMs: 3_000,
    });
    await clock.advance(100);
    const pauses = events.flatMap((event) => (event.type === 'waiting' ? [event.sleepMs] : []));
    expect(pauses).toEqual([expect.closeTo(3_000, -3.1)]);
  });

  it('gives the lowest free id, at version 1, on an empty store', async () => {
    const { start, store } = cluster();
    const lease = await start().lease;
    expect([lease.id, lease.version, lease.isValid()]).toEqual([0, 1, true]);
    expect(await body(store, '0.json')).toMatchObject({
      taskId: 'task-1',
      version: 1,
      durationMs: DURATION,
      knownNodesMapping: {},
    });
    expect(await body(store, 'cluster.json')).toEqual({
      size: 3,
      durationMs: DURATION,
      graceMs: GRACE,
      idWidth: 8,
      bootstrapped: false,
    });
  });

  it('gives each of 20 simultaneous starters a different id, within few requests', async () => {
    const { start } = cluster({ nodes: 20 });
    const started = Array.from({ length: 20 }, () => start());
    const leases = await Promise.all(started.map(({ lease }) => lease));
    expect(leases.map(({ id }) => id).sort((a, b) => a - b)).toEqual(
      Array.from({ length: 20 }, (_, id) => id),
    );
    expect(leases.map(({ version }) => version)).toEqual(Array(20).fill(1));
    const requests = started.flatMap(({ events }) =>
      events.flatMap((event) => (event.type === 'acquired' ? [event.requests] : [])),
    );
    expect(requests.reduce((sum, n) => sum + n, 0) / 20).toBeLessThan(6);
  });

  it('creates the missing objects while the leases are held, and records that bootstrap is complete', async () => {
    const { start, store, clock } = cluster({ nodes: 5 });
    await start().lease;
    await clock.advance(5_000);
    expect((await store.list()).objects.map(({ key }) => key)).toEqual([
      '0.json',
      '1.json',
      '2.json',
      '3.json',
      '4.json',
      'cluster.json',
    ]);
    expect(await body(store, 'cluster.json')).toMatchObject({ bootstrapped: true });
  });

  it('reports once that there was no cluster, so that a mistake in the prefix is seen', async () => {
    const { start } = cluster({ nodes: 20 });
    const started = Array.from({ length: 20 }, () => start());
    await Promise.all(started.map(({ lease }) => lease));
    const made = started.flatMap(({ events }) => events.filter(({ type }) => type === 'cluster-created'));
    expect(made).toEqual([{ type: 'cluster-created', size: 20, store: 'memory:' }]);
  });

  it('creates no cluster where only an existing one is wanted, and accepts one that a listing does not show yet', async () => {
    const { start, store } = cluster({ nodes: 1 });
    const refused = start({ cluster: 'existing' });
    await expect(refused.lease).rejects.toThrow(
      'memory:: there is no cluster, and only an existing one is to be used (cluster: existing)',
    );
    await expect(refused.lease).rejects.toMatchObject({ code: 'CLUSTER_MISSING' });
    expect((await store.list()).objects).toEqual([]);

    await (await start().lease).release();
    let listings = 0;
    const stale: MemoryIntercept = async (call, apply) => {
      const reply = apply();
      if (call.operation !== 'list') return reply;
      listings += 1;
      return listings === 1 ? ({ ...reply, objects: [] } as typeof reply) : reply;
    };
    const late = start({ cluster: 'existing', intercept: stale });
    expect((await late.lease).version).toBe(2);
    expect(late.events.filter(({ type }) => type === 'cluster-created')).toEqual([]);
    expect(listings).toBeGreaterThan(0);
  });

  it('uses the stored settings, and warns that they overrule its own', async () => {
    const { start } = cluster({ nodes: 2 });
    await start().lease;
    const second = start({ nodes: 9, durationMs: 2_000 });
    const lease = await second.lease;
    expect(second.events.filter(({ type }) => type === 'setting-overruled')).toEqual([
      { type: 'setting-overruled', setting: 'nodes', own: 9, stored: 2 },
      { type: 'setting-overruled', setting: 'duration', own: 2_000, stored: DURATION },
    ]);
    expect(lease.deadline).toBe(DURATION);
  });

  it('warns once of a preferred id that the cluster does not have, and acquires another one', async () => {
    const { start } = cluster({ nodes: 2 });
    const warnings = ({ events }: ReturnType<typeof start>) =>
      events.filter(({ type }) => type === 'setting-overruled');
    const beyond = start({ preferId: 2 });
    expect((await beyond.lease).id).toBe(0);
    expect(warnings(beyond)).toEqual([
      { type: 'setting-overruled', setting: 'prefer-id', own: 2, stored: 2 },
    ]);
    const within = start({ preferId: 1 });
    expect((await within.lease).id).toBe(1);
    expect(warnings(within)).toEqual([]);
  });

  it('takes a released id at the next version, as soon as it is released', async () => {
    const { start, clock } = cluster({ nodes: 1 });
    const first = await start().lease;
    const second = start();
    await clock.advance(4_000);
    await first.release();
    await clock.advance(200);
    const lease = await second.lease;
    expect([lease.id, lease.version]).toEqual([0, 2]);
  });

  it.each([1, 1000])(
    'takes an expired id after duration and grace, and not before (store time cut to %i ms)',
    async (resolutionMs) => {
      const { start, clock } = cluster({ nodes: 1, resolutionMs });
      const dead: MemoryIntercept = async (_, apply) => {
        if (clock.monotonic() > 0)
          throw new StoreError('dead', { fault: 'unreachable', outcome: 'not-applied' });
        return apply();
      };
      await start({ intercept: dead }).lease;
      const waiting = start();
      let lease: Lease | undefined;
      void waiting.lease.then((held) => {
        lease = held;
      });
      await clock.advance(DURATION + GRACE);
      expect(lease).toBeUndefined();
      await clock.advance(2_000 + resolutionMs);
      expect(lease?.version).toBe(2);
      expect(waiting.events).toContainEqual(
        expect.objectContaining({ type: 'acquired', from: 'expired', store: 'memory:' }),
      );
    },
  );

  it('never takes a lease that is being renewed, however far its own wall clock is off', async () => {
    const { start, clock } = cluster({ nodes: 1 });
    const first = await start().lease;
    clock.wallOffset += 10 * 3_600_000;
    const second = start({ acquireTimeoutMs: 10 * DURATION });
    await clock.advance(10 * DURATION + 1);
    await expect(second.lease).rejects.toBeInstanceOf(AcquireTimeoutError);
    expect(first.isValid()).toBe(true);
  });

  it('reports that no id became free in time', async () => {
    const { start } = cluster({ nodes: 1 });
    await start().lease;
    await expect(start({ acquireTimeoutMs: 0 }).lease).rejects.toThrow(
      /^memory:: its only node id did not become free in time; `nodelease status` shows who holds them$/,
    );
  });

  it('names the damaged objects where no id became free in time', async () => {
    const { start, store } = cluster({ nodes: 3 });
    for (const key of ['1.json', '0.json']) await store.create(key, 'damaged', {});
    await start().lease;
    await expect(start({ acquireTimeoutMs: 0 }).lease).rejects.toThrow(
      /^memory:: none of the 3 node ids became free .*; damaged and not usable: 0\.json, 1\.json$/,
    );
  });

  it('names a lease object that is not JSON, leaves it untouched, and uses the others', async () => {
    const { start, store, clock } = cluster({ nodes: 3 });
    await store.create('0.json', 'not json', {});
    const first = start();
    const second = start();
    expect([(await first.lease).id, (await second.lease).id].sort()).toEqual([1, 2]);
    expect(first.events).toContainEqual({
      type: 'damaged',
      key: '0.json',
      problem: expect.stringMatching(
        /is not JSON.*; left as it is, `nodelease init --repair --above-version N` replaces it$/,
      ),
    });
    await clock.advance(10_000);
    expect((await store.read('0.json'))?.body).toBe('not json');
  });

  it('reports an object that was deleted after bootstrap instead of restarting its versions', async () => {
    const { start, store, clock } = cluster({ nodes: 2 });
    const first = await start().lease;
    await clock.advance(5_000);
    expect(await body(store, 'cluster.json')).toMatchObject({ bootstrapped: true });
    const bare = new MemoryLeaseStore({ clock });
    for (const { key } of (await store.list()).objects.filter(({ key }) => key !== '1.json')) {
      const object = await store.read(key);
      await bare.create(key, object?.body ?? '', object?.metadata ?? {});
    }
    const second = start({ store: bare, acquireTimeoutMs: 0 });
    await expect(second.lease).rejects.toThrow('1.json');
    expect(second.events).toContainEqual({
      type: 'damaged',
      key: '1.json',
      problem: expect.stringContaining('init --repair'),
    });
    await first.release();
  });

  it('does not report an object as deleted that was created during the scan, however old the settings are', async () => {
    const { start, bucket, clock } = cluster({ nodes: 2 });
    const settings = {
      ...newCluster({ nodes: 2, durationMs: DURATION, graceMs: GRACE }),
      bootstrapped: false,
    };
    bucket.create('cluster.json', encodeCluster(settings), {});
    await clock.advance(60_000);
    let looks = 0;
    const bootstrapEndsMeanwhile: MemoryIntercept = async (call, apply) => {
      const reply = apply();
      if (call.operation === 'list' && ++looks === 1) {
        for (const key of ['0.json', '1.json']) bucket.create(key, '', {});
        bucket.replace(
          'cluster.json',
          encodeCluster({ ...settings, bootstrapped: true }),
          {},
          bucket.read('cluster.json')?.etag ?? '',
        );
      }
      return reply;
    };
    const task = start({ intercept: bootstrapEndsMeanwhile, acquireTimeoutMs: 0 });
    expect((await task.lease).id).toBe(0);
    expect(task.events.map(({ type }) => type)).not.toContain('damaged');
  });

  it('releases the acquired id when its signal aborts during the test of the store', async () => {
    const { start, store, bucket, clock } = cluster({ nodes: 1 });
    await (await start().lease).release();
    const stop = new AbortController();
    const remote = new MemoryLeaseStore(
      {
        clock,
        remote: true,
        intercept: async (call, apply) => {
          if (
            call.operation === 'replace' &&
            call.key === '0.json' &&
            bucket.read('0.json')?.body.includes('taskId')
          )
            stop.abort(new Error('enough'));
          return apply();
        },
      },
      bucket,
    );
    await expect(start({ store: remote, signal: stop.signal }).lease).rejects.toThrow('enough');
    expect(await body(store, '0.json')).toMatchObject({ released: true, version: 2 });
  });

  it('spreads 100 simultaneous starters over 100 released ids within few requests each', async () => {
    const { start, bucket, clock } = cluster({ nodes: 100 });
    const slow: MemoryIntercept = async (_, apply) => {
      await clock.sleep(15);
      const reply = apply();
      await clock.sleep(15);
      return reply;
    };
    for (const version of [1, 2]) {
      const started = Array.from({ length: 100 }, () =>
        start({ store: new MemoryLeaseStore({ clock, intercept: slow }, bucket) }),
      );
      await clock.advance(5_000);
      const leases = await Promise.all(started.map(({ lease }) => lease));
      expect(new Set(leases.map(({ id }) => id)).size).toBe(100);
      expect(new Set(leases.map((lease) => lease.version))).toEqual(new Set([version]));
      const requests = started.flatMap(({ events }) =>
        events.flatMap((event) => (event.type === 'acquired' ? [event.requests] : [])),
      );
      expect(requests.reduce((sum, n) => sum + n, 0) / 100).toBeLessThan(6);
      expect(Math.max(...requests)).toBeLessThan(25);
      await Promise.all([...leases.map((lease) => lease.release()), clock.advance(1_000)]);
    }
  });

  it('recognizes its own acquiring write after a lost reply', async () => {
    const { start } = cluster({ nodes: 3 });
    const lossy: MemoryIntercept = async (call, apply) => {
      const reply = apply();
      if (call.operation === 'create' && call.key === '0.json')
        throw new StoreError('reply lost', { fault: 'unreachable', outcome: 'unknown' });
      return reply;
    };
    const lease = await start({ intercept: lossy }).lease;
    expect([lease.id, lease.version]).toEqual([0, 1]);
  });

  it('does not adopt the write of another task with the same task id', async () => {
    const { start, clock } = cluster({ nodes: 2 });
    let rival: Promise<Lease> | undefined;
    const raced: MemoryIntercept = async (call, apply) => {
      if (call.operation === 'create' && call.key === '0.json') {
        rival ??= start({ taskId: 'web' }).lease;
        await rival;
        throw new StoreError('request lost', { fault: 'unreachable', outcome: 'unknown' });
      }
      return apply();
    };
    const second = start({ taskId: 'web', intercept: raced }).lease;
    await clock.advance(1_000);
    expect([(await rival)?.id, (await second).id]).toEqual([0, 1]);
  });

  it.each(['create', 'replace'] as const)(
    'refuses a remote store that ignores the condition of a %s, although the cluster exists',
    async (ignored) => {
      const { start, store, bucket, clock } = cluster({ nodes: 3 });
      await (await start().lease).release();
      const careless: MemoryIntercept = async (call, apply) => {
        const reply = apply();
        if (call.operation !== ignored) return reply;
        return {
          status: 'written',
          etag: (await store.read(call.key))?.etag,
          storeTime: { min: 0, max: 0 },
        } as typeof reply;
      };
      const remote = new MemoryLeaseStore({ clock, remote: true, intercept: careless }, bucket);
      await (await start().lease).release();
      const outcomes = await Promise.allSettled([
        start({ store: remote }).lease,
        start({ store: remote }).lease,
      ]);
      expect(outcomes.map((outcome) => outcome.status === 'rejected' && outcome.reason.code)).toContain(
        'STORE_UNSAFE',
      );
      const condition = ignored === 'create' ? 'If-None-Match' : 'If-Match';
      expect(outcomes.map((outcome) => outcome.status === 'rejected' && outcome.reason.message)).toContain(
        `memory:: the store ignores conditional writes (${condition}): it would give one node id to several tasks`,
      );
    },
  );

  it('refuses a remote store whose conditions are not atomic, at the first start and at every later one', async () => {
    const { start, bucket, clock } = cluster({ nodes: 3 });
    // Compares first and writes later, as some gateways do: other tasks compare in between.
    const checkThenWrite: MemoryIntercept = async (call, apply) => {
      if (call.operation !== 'create' && call.operation !== 'replace') return apply();
      const object = bucket.read(call.key);
      if (call.operation === 'create' ? object !== undefined : object?.etag !== call.etag)
        return { status: 'conflict' } as ReturnType<typeof apply>;
      await clock.sleep(5);
      const now = bucket.read(call.key);
      const result =
        now === undefined
          ? bucket.create(call.key, call.body, {})
          : bucket.replace(call.key, call.body, {}, now.etag);
      return result as ReturnType<typeof apply>;
    };
    const remote = new MemoryLeaseStore({ clock, remote: true, intercept: checkThenWrite }, bucket);
    for (const _ of ['first', 'second']) {
      const refused = [start({ store: remote }), start({ store: remote })];
      await clock.advance(10_000);
      for (const { lease } of refused) await expect(lease).rejects.toMatchObject({ code: 'STORE_UNSAFE' });
    }
  });

  it('accepts a remote store that keeps its conditions', async () => {
    const { start, bucket, clock } = cluster({ nodes: 3 });
    const first = await start().lease;
    const remote = new MemoryLeaseStore({ clock, remote: true }, bucket);
    const second = await start({ store: remote }).lease;
    await first.release();
    const third = await start({ store: remote }).lease;
    expect([second.id, second.version, third.id, third.version]).toEqual([1, 1, 0, 2]);
    await clock.advance(20_000);
    expect([second.isValid(), third.isValid()]).toEqual([true, true]);
  });

  /** What a task asks of the lease objects of a remote store; `meanwhile` comes before each request. */
  function watched(
    { bucket, clock }: ReturnType<typeof cluster>,
    meanwhile: (request: string) => unknown = () => undefined,
  ) {
    const asked: string[] = [];
    const intercept: MemoryIntercept = async (call, apply) => {
      const request = `${call.operation} ${'key' in call ? call.key : ''}`;
      asked.push(request);
      await meanwhile(request);
      return apply();
    };
    const store = new MemoryLeaseStore({ clock, remote: true, intercept }, bucket);
    const writes = () => asked.filter((request) => /^(create|replace) \d/.test(request));
    return { store, asked, writes };
  }

  it('needs no refusal of a remote store that has refused it before', async () => {
    const scene = cluster({ nodes: 2 });
    const { start } = scene;
    const both = [await start().lease, await start().lease];
    for (const lease of both) await lease.release();
    let rival: Promise<Lease> | undefined;
    const { store, writes } = watched(scene, (request) => {
      if (request === 'replace 0.json') rival ??= start({ preferId: 0 }).lease;
      return rival;
    });
    const lease = start({ store }).lease;
    await scene.clock.advance(1_000);
    expect([(await rival)?.id, (await lease).id]).toEqual([0, 1]);
    expect(writes()).toEqual(['replace 0.json', 'replace 1.json']);
  });

  it('asks a remote store for both refusals where it creates its object', async () => {
    const scene = cluster({ nodes: 2 });
    await scene.start().lease;
    const { store, writes } = watched(scene);
    expect((await scene.start({ store }).lease).id).toBe(1);
    expect(writes()).toEqual(['create 1.json', 'create 1.json', 'replace 1.json']);
  });

  it('does not ask it for one of a create where another task has just created the cluster', async () => {
    const scene = cluster({ nodes: 2 });
    let rival: Promise<Lease> | undefined;
    const { store, writes } = watched(scene, (request) => {
      if (request === 'create cluster.json') rival ??= scene.start().lease;
      return rival;
    });
    const lease = scene.start({ store }).lease;
    await scene.clock.advance(30_000);
    expect((await lease).id).toBe(1);
    expect(writes().filter((request) => request === 'create 1.json')).toHaveLength(1);
  });

  it('needs no refusal of a create that lost a race', async () => {
    const scene = cluster({ nodes: 3 });
    await scene.start().lease;
    let rival: Promise<Lease> | undefined;
    const { store, writes } = watched(scene, (request) => {
      if (request === 'create 1.json') rival ??= scene.start({ preferId: 1 }).lease;
      return rival;
    });
    const lease = scene.start({ store }).lease;
    await scene.clock.advance(1_000);
    expect([(await rival)?.id, (await lease).id]).toEqual([1, 2]);
    expect(writes()).toEqual(['create 1.json', 'create 2.json', 'replace 2.json']);
  });

  it('does not believe in a lease of a remote store that has not refused in time what it must refuse', async () => {
    const scene = cluster({ nodes: 1 });
    const { start, clock } = scene;
    await (await start().lease).release();
    let taken = false;
    const away = new StoreError('away', { fault: 'unreachable', outcome: 'not-applied' });
    const { store } = watched(scene, (request) => {
      if (taken && clock.monotonic() < 14_000) throw away;
      taken ||= request === 'replace 0.json';
    });
    const lease = start({ store }).lease;
    await clock.advance(60_000);
    // Its first one has expired meanwhile.
    expect((await lease).version).toBe(3);
  });

  it('gives up where a remote store denies access to what it must refuse', async () => {
    const scene = cluster({ nodes: 1 });
    await (await scene.start().lease).release();
    let writes = 0;
    const { store } = watched(scene, (request) => {
      if (request === 'replace 0.json' && ++writes === 2)
        throw new StoreError('no', { fault: 'denied', outcome: 'not-applied' });
    });
    await expect(scene.start({ store }).lease).rejects.toMatchObject({ code: 'STORE_DENIED' });
  });

  it('takes another id where an object is deleted between a listing and the read of it', async () => {
    const scene = cluster({ nodes: 2 });
    const first = await scene.start().lease;
    await scene.clock.advance(5_000);
    await first.release();
    const { store } = watched(scene, (request) => {
      if (request === 'read 0.json') scene.bucket.remove('0.json');
    });
    const { lease } = scene.start({ store: Object.assign(store, { remote: false }) });
    await scene.clock.advance(5_000);
    expect((await lease).id).toBe(1);
  });

  it('does not believe in a lease whose acquiring write was answered at its stop point', async () => {
    const { start, clock } = cluster({ nodes: 1 });
    const slow: MemoryIntercept = async (call, apply) => {
      const reply = apply();
      if (call.operation === 'create' && call.key === '0.json') await clock.sleep(2_500);
      return reply;
    };
    const { lease, events } = start({ intercept: slow, durationMs: 3_000 });
    await clock.advance(10_000);
    expect((await lease).version).toBe(2);
    expect(events.filter(({ type }) => type === 'lost')).toEqual([]);
  });

  it.each([
    ['denied', 'not-applied', ['create 0.json']],
    ['unavailable', 'not-applied', ['create 0.json', 'create 0.json']],
    ['unavailable', 'unknown', ['create 0.json', 'read 0.json', 'create 0.json']],
  ] as const)(
    'tries an acquiring write again if that may help, and reads first if it may be applied: %s, %s',
    async (fault, outcome, expected) => {
      const scene = cluster({ nodes: 1 });
      const failure = new StoreError('no', { fault, outcome });
      let fails = true;
      const { asked, store } = watched(scene, (request) => {
        if (request !== 'create 0.json' || !fails) return;
        fails = false;
        throw failure;
      });
      const { lease, events } = scene.start({ store: Object.assign(store, { remote: false }) });
      await scene.clock.advance(1_000);
      expect(asked.filter((request) => request.endsWith(' 0.json'))).toEqual(expected);
      const retried = events.filter(({ type }) => type === 'store-failed');
      if (fault === 'denied') await expect(lease).rejects.toMatchObject({ code: 'STORE_DENIED' });
      else expect(retried).toEqual([{ type: 'store-failed', error: failure, sleepMs: expect.any(Number) }]);
    },
  );

  it('gives up at once when access is denied, and after a while when the store does not answer', async () => {
    const { start, clock } = cluster();
    const fault =
      (kind: 'denied' | 'unreachable'): MemoryIntercept =>
      async () => {
        throw new StoreError(`it is ${kind}`, { fault: kind, outcome: 'not-applied' });
      };
    await expect(start({ intercept: fault('denied') }).lease).rejects.toMatchObject({
      code: 'STORE_DENIED',
      message: 'the store cannot be used: it is denied',
      cause: { fault: 'denied' },
    });
    const silent = start({ intercept: fault('unreachable') });
    await clock.advance(8_000);
    await expect(silent.lease).rejects.toMatchObject({
      code: 'STORE_UNREACHABLE',
      cause: { fault: 'unreachable' },
    });
  });

  it('sends few requests to a store that lists but accepts no writes, and gives up when the time is up', async () => {
    const { start, store, clock } = cluster({ nodes: 3 });
    await start().lease;
    let writes = 0;
    const readOnly: MemoryIntercept = async (call, apply) => {
      if (call.operation !== 'create' && call.operation !== 'replace') return apply();
      writes += 1;
      throw new StoreError('slow down', { fault: 'unavailable', outcome: 'unknown' });
    };
    const waiting = start({ store: store.connect(readOnly), acquireTimeoutMs: 60_000 });
    await clock.advance(65_000);
    await expect(waiting.lease).rejects.toMatchObject({ code: 'STORE_UNAVAILABLE' });
    expect(writes).toBeLessThan(70);
  });

  describe('without waiting for holders', () => {
    const BUSY = new StoreError('answered HTTP 503', { fault: 'unavailable', outcome: 'unknown' });
    const REFUSED = new StoreError('not now', { fault: 'unavailable', outcome: 'not-applied' });
    /** A task on a cluster with a free id, whose requests fail at first or for ever. */
    async function tried(fails: (call: MemoryCall, nth: number) => unknown, remote = true) {
      const { start, bucket, clock } = cluster({ nodes: 1 });
      await (await start().lease).release();
      await clock.advance(5_000);
      const nths = new Map<string, number>();
      const intercept: MemoryIntercept = async (call, apply) => {
        const name = JSON.stringify([call.operation, 'key' in call && call.key]);
        const nth = (nths.get(name) ?? 0) + 1;
        nths.set(name, nth);
        const failure = fails(call, nth);
        if (failure === 'after') apply();
        if (failure) throw failure === 'after' ? BUSY : failure;
        return apply();
      };
      const store = new MemoryLeaseStore({ clock, remote, intercept }, bucket);
      const begun = clock.monotonic();
      const { lease } = start({ store, acquireTimeoutMs: 0 });
      const ended = lease.then(
        ({ id }) => `id ${id}`,
        ({ code }) => code,
      );
      let outcome: string | undefined;
      let tookMs = 0;
      void ended.then((value) => {
        outcome = value;
        tookMs = clock.monotonic() - begun;
      });
      for (let step = 0; step < 300 && outcome === undefined; step += 1) await clock.advance(100);
      return { outcome, tookMs };
    }
    const isWrite = ({ operation }: MemoryCall) => operation === 'create' || operation === 'replace';

    it.each<[string, (call: MemoryCall, nth: number) => unknown]>([
      ['each first request is answered 503', (_, nth) => nth === 1 && BUSY],
      ['each first write is answered 503, and applied', (call, nth) => isWrite(call) && nth === 1 && 'after'],
      ['nine writes in a row are refused', (call, nth) => isWrite(call) && nth <= 9 && REFUSED],
      ['three reads in a row are answered 503', (call, nth) => !isWrite(call) && nth <= 3 && BUSY],
    ])('an id is acquired although %s', async (_, fails) => {
      expect((await tried(fails)).outcome).toBe('id 0');
    });

    it.each<[string, (call: MemoryCall, nth: number) => unknown]>([
      ['takes no writes', (call) => isWrite(call) && BUSY],
      ['takes no writes, and gives no reads', (call) => call.operation !== 'list' && BUSY],
      ['gives no reads', (call) => call.operation === 'read' && BUSY],
      ['applies a write, and fails then', (call, nth) => isWrite(call) && (nth === 1 ? 'after' : BUSY)],
      ['gives no reads after a write', (call, nth) => (isWrite(call) ? 'after' : nth > 1 && BUSY)],
      [
        'lists, but gives no reads after a write',
        (call, nth) => (isWrite(call) ? 'after' : call.operation === 'read' && nth > 1 && BUSY),
      ],
    ])('a store that %s is the failure after some seconds, and no holder', async (_, fails) => {
      const { outcome, tookMs } = await tried(fails);
      expect(outcome).toBe('STORE_UNAVAILABLE');
      expect(tookMs).toBeGreaterThan(4_000);
      expect(tookMs).toBeLessThan(25_000);
    });
  });

  it('stops waiting when its signal aborts', async () => {
    const { start, clock } = cluster({ nodes: 1 });
    await start().lease;
    const stop = new AbortController();
    const waiting = start({ signal: stop.signal });
    await clock.advance(2_000);
    stop.abort(new Error('enough'));
    await expect(waiting.lease).rejects.toThrow('enough');
  });

  it.each([
    ['nodes', { nodes: 0 }],
    ['nodes', { nodes: 65_529 }],
    ['durationMs', { durationMs: 0.5 }],
    ['graceMs', { graceMs: -1 }],
    ['graceMs', { graceMs: 14 }],
    ['graceMs', { graceMs: 1_000, durationMs: 1_000_001 }],
    ['taskId', { taskId: 'with space' }],
  ])('names the setting %s that is out of range', async (setting, wrong) => {
    await expect(cluster().start(wrong).lease).rejects.toMatchObject({ constructor: ConfigError, setting });
  });
});
