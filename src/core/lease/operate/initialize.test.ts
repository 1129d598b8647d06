import { describe, expect, it } from 'vitest';
import { seededRandom, VirtualClock } from '../../../../test/support/virtual-clock.js';
import { ConfigError } from '../../base/errors.js';
import { StoreError, type StoreFault } from '../../store/lease-store.js';
import { MemoryBucket } from '../../store/memory/memory-bucket.js';
import { MemoryLeaseStore } from '../../store/memory/memory-lease-store.js';
import { acquireLease } from '../acquire/acquire-lease.js';
import type { WantedSettings } from '../model/cluster-config.js';
import { leapt } from '../model/lease-state.js';
import { StoreSession } from '../session/store-session.js';
import { initializeCluster, repairCluster } from './initialize.js';
import { inspectCluster } from './inspect.js';

function setUp({ resolutionMs = 1 } = {}) {
  const clock = new VirtualClock();
  const bucket = new MemoryBucket(clock, resolutionMs);
  const store = new MemoryLeaseStore({ clock }, bucket);
  const session = new StoreSession(store, clock, 1_000);
  const acquire = () =>
    acquireLease({ store, clock, random: seededRandom(1), taskId: 'task', acquireTimeoutMs: 0 });
  return { clock, bucket, store, session, acquire };
}

const initialize = (session: StoreSession, wanted: WantedSettings) =>
  initializeCluster({ session, clock: new VirtualClock(), random: seededRandom(9), wanted });

const wanted = { nodes: 4, durationMs: 15_000, graceMs: 1_000 };

describe('nodelease init', () => {
  it('creates the settings and every object, and does nothing the second time', async () => {
    const { session, store } = setUp();
    expect(await initialize(session, wanted)).toMatchObject({
      clusterCreated: true,
      created: [0, 1, 2, 3],
      damaged: [],
    });
    expect((await store.list()).objects.map(({ key, size }) => [key, size]).slice(0, 4)).toEqual([
      ['0.json', 0],
      ['1.json', 0],
      ['2.json', 0],
      ['3.json', 0],
    ]);
    expect(await initialize(session, wanted)).toMatchObject({
      clusterCreated: false,
      created: [],
      cluster: { config: { size: 4, bootstrapped: true } },
    });
  });

  it('does not read what the reply to a write has shown', async () => {
    const { clock, store } = setUp();
    const asked: string[] = [];
    const counting = store.connect(async (call, apply) => {
      asked.push('key' in call ? `${call.operation} ${call.key}` : call.operation);
      return apply();
    });
    const session = new StoreSession(counting, clock, 1_000);
    await initialize(session, { ...wanted, nodes: 2 });
    // Are there settings? Is it another program's cluster? Which objects are missing? Are all of them there
    // now?
    expect(asked).toEqual([
      ...[
        'read cluster.json',
        'list',
        'create cluster.json',
        'list',
        'create 0.json',
        'create 1.json',
        'list',
        'replace cluster.json',
      ],
    ]);
    asked.length = 0;
    await initialize(session, wanted);
    expect(asked).toEqual(['read cluster.json', 'list']);
  });

  it('tries again where the store is busy at first, but not where it cannot be reached', async () => {
    const { clock, store } = setUp();
    const begin = (fault: StoreFault) => {
      let calls = 0;
      const failing = store.connect(async (_, apply) => {
        calls += 1;
        if (calls <= 3) throw new StoreError('no', { fault, outcome: 'not-applied' });
        return apply();
      });
      const session = new StoreSession(failing, clock, 1_000);
      const done = initializeCluster({ session, clock, random: seededRandom(9), wanted });
      done.catch(() => undefined);
      return done;
    };
    await expect(begin('unreachable')).rejects.toThrow('no');
    const done = begin('unavailable');
    await clock.advance(10_000);
    expect(await done).toMatchObject({ clusterCreated: true, created: [0, 1, 2, 3] });
  });

  it('survives a store that fails now and then', async () => {
    const { clock, bucket } = setUp();
    let calls = 0;
    const failing = new MemoryLeaseStore(
      {
        clock,
        intercept: async (_, apply) => {
          calls += 1;
          const reply = apply();
          if (calls > 3 && calls % 3 === 0)
            throw new StoreError('slow down', { fault: 'unavailable', outcome: 'unknown' });
          return reply;
        },
      },
      bucket,
    );
    const session = new StoreSession(failing, clock, 1_000);
    const done = initializeCluster({
      session,
      clock,
      random: seededRandom(9),
      wanted: { ...wanted, nodes: 200 },
    });
    done.catch(() => undefined);
    await clock.advance(60_000);
    expect(await done).toMatchObject({
      clusterCreated: true,
      damaged: [],
      cluster: { config: { bootstrapped: true } },
    });
    expect(bucket.list().objects).toHaveLength(201);
  });

  it('continues where an interrupted call stopped, and leaves held leases alone', async () => {
    const { session, store, acquire } = setUp();
    await store.create(
      'cluster.json',
      '{"size":4,"durationMs":15000,"graceMs":1000,"bootstrapped":false}',
      {},
    );
    const lease = await acquire();
    expect(await initialize(session, wanted)).toMatchObject({ clusterCreated: false, created: [1, 2, 3] });
    expect(lease.isValid()).toBe(true);
    await lease.release();
  });

  it('reports an object that was deleted after bootstrap, and leaves it to a repair', async () => {
    const { session, bucket } = setUp();
    await initialize(session, wanted);
    bucket.remove('2.json');
    expect(await initialize(session, wanted)).toMatchObject({ created: [], damaged: [2] });
    expect(bucket.read('2.json')).toBeUndefined();
  });
});

describe('nodelease init --repair', () => {
  it('restores a deleted object above the given version, and keeps it from being taken for a duration', async () => {
    const { session, bucket, acquire, clock } = setUp();
    await initialize(session, wanted);
    const lease = await acquire();
    lease.setKnownNodes({ 2: 7 });
    await clock.advance(5_000);
    bucket.remove('2.json');
    expect(await repairCluster({ session, clock, aboveVersion: 41 })).toEqual([
      { id: 2, problem: 'is absent', version: 42 },
    ]);
    const status = await inspectCluster(session);
    expect(status?.nodes[2]).toMatchObject({ state: 'evicted', version: 42 });
    await clock.advance(16_100);
    expect((await inspectCluster(session))?.nodes[2]).toMatchObject({ state: 'released', version: 42 });
    expect(JSON.parse(bucket.read('2.json')?.body ?? '')).toMatchObject({ durationMs: 15_000 });
    await lease.release();
  });

  it('keeps the unique ids of the next tenure above all that the holder of the lost object may have made', async () => {
    const { session, bucket, acquire, clock } = setUp();
    await initialize(session, { ...wanted, nodes: 1 });
    const first = await acquire();
    await clock.advance(4_900);
    const last = first.tenureTime?.before() ?? 0;
    bucket.remove('0.json');
    await repairCluster({ session, clock, aboveVersion: 1 });
    await clock.advance(40_000);
    const second = await acquire();
    expect(second.tenureTime?.after).toBeGreaterThanOrEqual(last - 1);
    // It is known that this is long past, so no task has to wait for it.
    expect(second.tenureTime?.after).toBeLessThan(clock.now());
    await second.release();
  });

  it('keeps them above the expiry in the metadata of a damaged object, even if the clock of the store was set back since', async () => {
    const { session, bucket, acquire, clock } = setUp();
    const expiry = clock.now() + 7_200_000;
    bucket.create('0.json', 'garbage', { version: '9', expiry: String(expiry) });
    await initialize(session, { ...wanted, nodes: 1 });
    await clock.advance(17_100);
    await repairCluster({ session, clock });
    await clock.advance(20_000);
    const lease = await acquire();
    expect(lease.tenureTime?.after).toBe(expiry - 1);
    await lease.release();
  });

  it('restores an unreadable object above the version in its metadata or above the given one, whichever is higher', async () => {
    const { session, bucket, clock } = setUp();
    bucket.create('1.json', 'garbage', { version: '9' });
    await initialize(session, wanted);
    await clock.advance(17_100);
    expect(await repairCluster({ session, clock, aboveVersion: 5 })).toMatchObject([{ id: 1, version: 10 }]);
    bucket.remove('1.json');
    expect(await repairCluster({ session, clock, aboveVersion: 50 })).toMatchObject([{ id: 1, version: 51 }]);
  });

  it('writes all ids of a cluster that its first task created, where a version is given: after a restore none begins at 1', async () => {
    const { session, bucket, acquire, clock } = setUp();
    await (await acquire()).release();
    for (const key of ['0.json', '1.json', '2.json']) bucket.remove(key);
    expect(await repairCluster({ session, clock })).toEqual([]);
    const repairs = await repairCluster({ session, clock, aboveVersion: 17 });
    expect(new Set(repairs.map(({ version }) => version))).toEqual(new Set([18]));
    expect(repairs).toHaveLength((await inspectCluster(session))?.nodes.length ?? 0);
    await clock.advance(40_000);
    const lease = await acquire();
    expect(lease.version).toBe(19);
    await lease.release();
  });

  it('ignores a version that no id can have had, and that would leave no room for later ones', async () => {
    const { session, bucket, acquire, clock } = setUp();
    await initialize(session, wanted);
    const lease = await acquire();
    lease.setKnownNodes({ 1: Number.MAX_SAFE_INTEGER, 2: Number.MAX_SAFE_INTEGER });
    await clock.advance(5_000);
    bucket.remove('1.json');
    expect(await repairCluster({ session, clock })).toEqual([
      { id: 1, problem: 'is absent', version: undefined, kept: 'unknown' },
    ]);
    await expect(repairCluster({ session, clock, aboveVersion: 2 ** 52 })).rejects.toThrow(ConfigError);
    expect(await repairCluster({ session, clock, aboveVersion: 7 })).toMatchObject([{ id: 1, version: 8 }]);
    await lease.release();
  });

  it('watches a damaged object for a duration and the grace before it restores it, since a task may hold it', async () => {
    const { session, bucket, clock } = setUp();
    bucket.create('1.json', 'garbage', { version: '9' });
    await initialize(session, wanted);
    await clock.advance(10_000);
    const waits: number[] = [];
    const begun = clock.now();
    const done = repairCluster({ session, clock, aboveVersion: 50, onWait: (ms) => waits.push(ms) });
    await clock.advance(7_500);
    expect(await done).toMatchObject([{ id: 1, version: 51 }]);
    expect(waits[0]).toBeLessThanOrEqual(7_500);
    expect(bucket.read('1.json')?.storeTime.min).toBeGreaterThan(begun + 5_000);
  });

  it.each([0, 100, 500, 900, 999])(
    'restores it in one call if the store has times in whole seconds: written %i ms into one',
    async (ms) => {
      const { session, bucket, clock } = setUp({ resolutionMs: 1_000 });
      await initialize(session, wanted);
      await clock.advance(ms);
      bucket.replace('1.json', 'garbage', { version: '9' }, bucket.read('1.json')?.etag ?? '');
      await clock.advance(50);
      const done = repairCluster({ session, clock, aboveVersion: 50 });
      await clock.advance(20_000);
      expect(await done).toMatchObject([{ id: 1, version: 51 }]);
    },
  );

  it('leaves a damaged object alone that another task writes', async () => {
    const { session, bucket, clock } = setUp();
    bucket.create('1.json', 'garbage', { version: '9' });
    await initialize(session, wanted);
    const done = repairCluster({ session, clock });
    await clock.advance(10_000);
    bucket.replace('1.json', 'other garbage', { version: '9' }, bucket.read('1.json')?.etag ?? '');
    await clock.advance(10_000);
    expect(await done).toMatchObject([{ id: 1, version: undefined, kept: 'recent' }]);
    expect(bucket.read('1.json')?.body).toBe('other garbage');
  });

  it.each(['stampedUntil', 'timestamp'])(
    'restores an object whose %s leaves no room for a later id timestamp',
    async (field) => {
      const { session, bucket, acquire, clock } = setUp();
      const late = Number.MAX_SAFE_INTEGER;
      bucket.create('0.json', JSON.stringify({ released: true, version: 9, [field]: late }), {
        version: '9',
        expiry: String(late),
      });
      await initialize(session, { ...wanted, nodes: 1 });
      expect((await inspectCluster(session))?.nodes[0]?.problem).toContain(
        `"${field}": expected a whole number from 0 to 281474976710655`,
      );
      await clock.advance(17_100);
      expect(await repairCluster({ session, clock })).toMatchObject([{ id: 0, version: 10 }]);
      await clock.advance(20_000);
      const lease = await acquire();
      expect(lease.version).toBe(11);
      expect(lease.tenureTime?.after).toBeLessThan(clock.now());
      await lease.release();
    },
  );

  it.each([
    ['no other version is known', {}, undefined],
    ['the metadata of the damaged object has an older one', { version: '2' }, undefined],
    ['the given one is lower', undefined, 2],
  ])(
    'leaps over a version that another node knows, and may have known before later ones, where %s',
    async (_, metadata, aboveVersion) => {
      const { session, bucket, acquire, clock } = setUp();
      await initialize(session, wanted);
      (await acquire()).setKnownNodes({ 1: 3 });
      await clock.advance(5_000);
      bucket.remove('1.json');
      if (metadata) bucket.create('1.json', 'garbage', metadata);
      await clock.advance(17_100);
      const [repair] = await repairCluster({ session, clock, aboveVersion });
      expect(repair?.version).toBeGreaterThanOrEqual(leapt(3, session.storeNow().min));
      expect(repair?.version).toBeGreaterThan(2 ** 50);
    },
  );

  it('writes nothing if no version is known', async () => {
    const { session, bucket, clock } = setUp();
    await initialize(session, wanted);
    bucket.remove('1.json');
    expect(await repairCluster({ session, clock })).toEqual([
      { id: 1, problem: 'is absent', version: undefined, kept: 'unknown' },
    ]);
    expect(bucket.read('1.json')).toBeUndefined();
  });
});

describe('nodelease status', () => {
  it('shows every state', async () => {
    const { session, bucket, acquire, clock } = setUp();
    await initialize(session, { ...wanted, nodes: 6 });
    const [first, second] = [await acquire(), await acquire()];
    await second.release();
    bucket.remove('3.json');
    const broken = bucket.read('4.json');
    bucket.replace('4.json', 'garbage', {}, broken?.etag ?? '');
    const dead = { taskId: 'dead', version: 3, timestamp: 1, durationMs: 1_000 };
    bucket.replace('5.json', JSON.stringify(dead), {}, bucket.read('5.json')?.etag ?? '');
    await clock.advance(4_000);
    const status = await inspectCluster(session);
    expect(status?.nodes.map(({ state, version, taskId }) => [state, version, taskId])).toEqual([
      ['held', 1, 'task'],
      ['released', 1, undefined],
      ['vacant', 0, undefined],
      ['absent', 0, undefined],
      ['unreadable', 0, undefined],
      ['expired', 3, 'dead'],
    ]);
    expect(status?.nodes[4]?.problem).toContain('is not JSON');
    await first.release();
  });

  it('shows nothing without a cluster', async () => {
    expect(await inspectCluster(setUp().session)).toBeUndefined();
  });
});
