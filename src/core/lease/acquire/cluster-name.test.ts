import { describe, expect, it } from 'vitest';
import { inVirtualTime, seededRandom, VirtualClock } from '../../../../test/support/virtual-clock.js';
import { MemoryBucket } from '../../store/memory/memory-bucket.js';
import { MemoryLeaseStore } from '../../store/memory/memory-lease-store.js';
import { decodeCluster, encodeCluster, newCluster } from '../model/cluster-config.js';
import { initializeCluster } from '../operate/initialize.js';
import { StoreSession } from '../session/store-session.js';
import { acquireLease } from './acquire-lease.js';

// Two services that share a prefix by mistake.

function scene() {
  const clock = new VirtualClock();
  const bucket = new MemoryBucket(clock, 1);
  const store = new MemoryLeaseStore({ clock }, bucket);
  let tasks = 0;
  const start = (clusterName?: string) => {
    tasks += 1;
    const taskId = `task-${tasks}`;
    return inVirtualTime(
      clock,
      acquireLease({ store, clock, random: seededRandom(tasks), taskId, nodes: 40, clusterName }),
    );
  };
  const settings = () => decodeCluster(bucket.read('cluster.json')?.body ?? '');
  return { clock, bucket, store, start, settings };
}

const REFUSED = {
  code: 'CLUSTER_FOREIGN',
  message: expect.stringMatching(/the cluster is that of orders, and this task is of billing: /),
};

describe('the name of a cluster', () => {
  it('is that of the first start, and refuses a task of another name', async () => {
    const { start, settings } = scene();
    await start('orders');
    expect(settings().name).toBe('orders');
    await start('orders');
    await expect(start('billing')).rejects.toMatchObject(REFUSED);
    expect(settings().name).toBe('orders');
  });

  it('is given by init, to an existing cluster without one too', async () => {
    const { clock, store, start, settings } = scene();
    await start();
    expect(settings()).not.toHaveProperty('name');
    const session = new StoreSession(store, clock, 1_000);
    const init = (clusterName: string) =>
      inVirtualTime(
        clock,
        initializeCluster({ session, clock, random: seededRandom(9), wanted: { clusterName } }),
      );
    expect((await init('orders')).cluster.config).toMatchObject({ name: 'orders', size: 40 });
    expect(settings().name).toBe('orders');
    await expect(init('billing')).rejects.toMatchObject(REFUSED);
  });

  it('does not matter to a task without one, so that a rolling deployment may add it', async () => {
    const { start, settings } = scene();
    await start();
    await start('orders');
    expect(settings().name).toBe('orders');
    await start();
    expect(settings()).toMatchObject({ name: 'orders', size: 40 });
  });

  it('is that of one service only, where tasks of two start at once in a cluster without one', async () => {
    const { bucket, start, settings } = scene();
    bucket.create('cluster.json', encodeCluster({ ...newCluster({ nodes: 40 }), future: 1 } as never), {});
    const names = Array.from({ length: 20 }, (_, task) => (task % 2 === 0 ? 'orders' : 'billing'));
    const ends = await Promise.allSettled(names.map(start));
    const { name } = settings();
    expect(ends.map(({ status }) => status)).toEqual(
      names.map((own) => (own === name ? 'fulfilled' : 'rejected')),
    );
    expect(JSON.parse(bucket.read('cluster.json')?.body ?? '')).toMatchObject({ future: 1 });
  });
});
