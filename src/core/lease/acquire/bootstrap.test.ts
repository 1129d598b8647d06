import { describe, expect, it } from 'vitest';
import { seededRandom, VirtualClock } from '../../../../test/support/virtual-clock.js';
import { StoreError } from '../../store/lease-store.js';
import { MemoryBucket } from '../../store/memory/memory-bucket.js';
import { type MemoryIntercept, MemoryLeaseStore } from '../../store/memory/memory-lease-store.js';
import { type ClusterConfig, decodeCluster, encodeCluster, newCluster } from '../model/cluster-config.js';
import type { LeaseEvent } from '../model/lease.js';
import { StoreSession } from '../session/store-session.js';
import { completeBootstrap } from './bootstrap.js';

const SIZE = 12;

/** Tasks that complete the bootstrap of a cluster. `network` is that of each task. */
function scene(network: (call: string, nth: number) => unknown = () => undefined, size = SIZE) {
  const clock = new VirtualClock();
  const bucket = new MemoryBucket(clock, 1);
  const record = (change: Partial<ClusterConfig>) => {
    const body = encodeCluster({ ...newCluster({ nodes: size }), ...change });
    const { etag } = bucket.read('cluster.json') ?? {};
    if (etag === undefined) bucket.create('cluster.json', body, {});
    else bucket.replace('cluster.json', body, {}, etag);
  };
  record({});
  const start = (seed = 1) => {
    const asked: string[] = [];
    const events: LeaseEvent[] = [];
    const intercept: MemoryIntercept = async (call, apply) => {
      const name = 'key' in call ? `${call.operation} ${call.key}` : call.operation;
      asked.push(name);
      const nth = asked.filter((each) => each === name).length;
      await network(name, nth);
      return apply();
    };
    const session = new StoreSession(new MemoryLeaseStore({ clock, intercept }, bucket), clock, 5_000);
    const ending = new AbortController();
    const emit = (event: LeaseEvent) => void events.push(event);
    let hasEnded = false;
    void completeBootstrap({ session, clock, random: seededRandom(seed), emit }, ending.signal).finally(
      () => {
        hasEnded = true;
      },
    );
    const created = () => asked.filter((name) => name.startsWith('create'));
    return { asked, events, ending, created, hasEnded: () => hasEnded };
  };
  const isRecorded = () => decodeCluster(bucket.read('cluster.json')?.body ?? '').bootstrapped;
  return { clock, bucket, record, start, isRecorded };
}

describe('the bootstrap of a cluster', () => {
  it('is completed by one of the tasks, which reports it', async () => {
    const { clock, bucket, start, isRecorded } = scene();
    const tasks = [start(1), start(2), start(3)];
    await clock.advance(10_000);
    expect(bucket.list().objects).toHaveLength(SIZE + 1);
    expect([isRecorded(), tasks.map(({ hasEnded }) => hasEnded())]).toEqual([true, [true, true, true]]);
    expect(tasks.flatMap(({ events }) => events)).toEqual([{ type: 'bootstrapped' }]);
  });

  it('creates the objects in any order: tasks that start together share the work', async () => {
    const orders = new Set<string>();
    for (let seed = 1; seed <= 20; seed += 1) {
      const { clock, start } = scene(undefined, 3);
      const task = start(seed);
      await clock.advance(1_000);
      orders.add(task.created().join());
    }
    expect(orders.size).toBe(6);
  });

  it('is left to another task for a while that has created three of the objects', async () => {
    const { clock, bucket, start, isRecorded } = scene((name) => {
      if (name.startsWith('create')) bucket.create(name.slice('create '.length), '', {});
    });
    const task = start();
    await clock.advance(1_000);
    expect(task.created()).toHaveLength(3);
    await clock.advance(30_000);
    expect([task.created().length, isRecorded()]).toEqual([SIZE, true]);
  });

  it('is tried again by a task whose listings fail, after pauses from half a second to twenty', async () => {
    const times: number[] = [0];
    const { clock, start } = scene((name) => {
      if (name !== 'list') return;
      times.push(clock.monotonic());
      throw failed('unavailable');
    });
    start();
    await clock.advance(100_000);
    const pauses = times.slice(1).map((time, index) => time - (times[index] ?? 0));
    for (const [index, pause] of pauses.entries()) {
      const shortest = Math.min(500 * 2 ** index, 10_000);
      expect(pause).toBeGreaterThanOrEqual(shortest);
      expect(pause).toBeLessThan(2 * shortest);
    }
    expect(pauses.length).toBeGreaterThan(7);
  });

  it('ends without a request for objects once another task has recorded it', async () => {
    const { clock, record, start } = scene();
    const task = start();
    record({ bootstrapped: true });
    await clock.advance(10_000);
    expect([task.asked, task.hasEnded(), task.events]).toEqual([['read cluster.json'], true, []]);
  });

  it.each<[string, (name: string, nth: number) => unknown]>([
    ['a request fails', (name, nth) => nth === 1 && name === 'list' && failed('unavailable')],
    ['the settings change before the record', (name, nth) => nth === 1 && name.startsWith('replace')],
  ])('is completed although %s', async (_, happens) => {
    const { clock, record, start, isRecorded } = scene((name, nth) => {
      const what = happens(name, nth);
      if (what instanceof Error) throw what;
      if (what) record({ name: 'renamed' });
    });
    const task = start();
    await clock.advance(10_000);
    expect([isRecorded(), task.events]).toEqual([true, [{ type: 'bootstrapped' }]]);
  });

  it('is given up where the settings cannot be read: the renewals report that', async () => {
    const { clock, bucket, start } = scene();
    bucket.replace('cluster.json', 'garbage', {}, bucket.read('cluster.json')?.etag ?? '');
    const task = start();
    await clock.advance(60_000);
    expect([task.asked, task.hasEnded()]).toEqual([['read cluster.json'], true]);
  });

  it.each(['read cluster.json', 'list', 'create 0.json'])(
    'ends with the lease at once while the store does not answer %s',
    async (silent) => {
      const { clock, start } = scene((name) => name === silent && new Promise(() => undefined));
      const task = start();
      await clock.advance(1_100);
      task.ending.abort(new Error('released'));
      await clock.advance(0);
      expect([task.asked.at(-1), task.hasEnded()]).toEqual([silent, true]);
    },
  );

  it('creates nothing more once the lease ends', async () => {
    const { clock, start } = scene((name) => name.startsWith('create') && task.ending.abort());
    const task = start();
    await clock.advance(10_000);
    expect(task.created()).toHaveLength(1);
  });
});

function failed(fault: StoreError['fault']): StoreError {
  return new StoreError('no', { fault, outcome: 'not-applied' });
}
