import { describe, expect, it } from 'vitest';
import { VirtualClock } from '../../../test/support/virtual-clock.js';
import { ConfigError } from '../../core/base/errors.js';
import { encodeCluster, newCluster } from '../../core/lease/model/cluster-config.js';
import { nativeCodec } from '../../core/lease/model/lease-codec.js';
import {
  acquired,
  type LeaseState,
  leaseKey,
  released,
  retired,
} from '../../core/lease/model/lease-state.js';
import { StoreSession } from '../../core/lease/session/store-session.js';
import { MemoryBucket } from '../../core/store/memory/memory-bucket.js';
import { type MemoryIntercept, MemoryLeaseStore } from '../../core/store/memory/memory-lease-store.js';
import { type PageRequest, scanPage } from './cluster-page.js';
import { ClusterReader } from './cluster-reader.js';

const ordinary: PageRequest = { everything: false, paged: false, limit: 100, telling: false };
const going = new AbortController().signal;

function heldBy(taskId: string, renewal = 0) {
  const claim = { taskId, nonce: 'n', durationMs: 15_000, storeNow: 5, stampedUntil: 0, idWidth: 14 };
  return { ...acquired({ kind: 'vacant' }, claim), renewal };
}

/** A bootstrapped cluster of vacant ids, and the requests to its store. */
function scene(nodes: number, { size = nodes, generation = 0 } = {}) {
  const clock = new VirtualClock();
  const bucket = new MemoryBucket(clock, 1);
  const config = { ...newCluster({ nodes, durationMs: 15_000, graceMs: 1_000 }), bootstrapped: true };
  const settle = (change: Partial<typeof config>) => {
    const before = bucket.read('cluster.json');
    const body = encodeCluster({ ...config, peak: nodes, ...change });
    if (before === undefined) bucket.create('cluster.json', body, {});
    else bucket.replace('cluster.json', body, {}, before.etag);
  };
  settle({ size, generation });
  for (let id = 0; id < nodes; id += 1) bucket.create(leaseKey(id), '', {});
  const write = (id: number, state: LeaseState) => {
    const { body, metadata } = nativeCodec.encode(state);
    bucket.replace(leaseKey(id), body, metadata, bucket.read(leaseKey(id))?.etag ?? '');
  };
  const asked: string[] = [];
  let onRead: ((key: string) => void) | undefined;
  const intercept: MemoryIntercept = async (call, apply) => {
    asked.push(call.operation === 'read' ? call.key : call.operation);
    if (call.operation === 'read') onRead?.(call.key);
    return apply();
  };
  const session = new StoreSession(new MemoryLeaseStore({ clock, intercept }, bucket), clock, 1_000);
  return {
    ...{ clock, bucket, session, write, settle },
    asked: () => asked.splice(0),
    beforeRead: (listener: (key: string) => void) => {
      onRead = listener;
    },
    pager: (request: Partial<PageRequest> = {}) => {
      const reader = new ClusterReader(session, clock);
      return { scan: (signal: AbortSignal) => scanPage(reader, { ...ordinary, ...request }, signal) };
    },
  };
}

describe('a page of a large cluster', () => {
  it('costs one LIST, the settings, and a read of each lease object on it; the totals are of all 10,000', async () => {
    const { pager, asked, write, bucket, clock } = scene(10_000);
    for (let id = 0; id < 9_000; id += 1) write(id, heldBy(`task-${id}`));
    await clock.advance(17_000);
    for (let id = 0; id < 8_990; id += 1) write(id, heldBy(`task-${id}`, 1));
    for (let id = 9_000; id < 9_100; id += 1) write(id, released(heldBy('gone'), undefined, 0));
    bucket.remove('9500.json');
    const seen = await pager().scan(going);
    expect(asked()).toEqual([
      'list',
      'cluster.json',
      ...Array.from({ length: 100 }, (_, id) => leaseKey(id)),
    ]);
    expect(seen?.nodes).toHaveLength(100);
    expect(seen?.nodes[7]).toMatchObject({ id: 7, state: 'held', taskId: 'task-7' });
    expect(seen?.totals).toEqual({
      ...{ hints: true, held: 8_990, expired: 10, free: 999, neverHeld: 899, damaged: 1 },
      ...{ evicted: null, retired: 0 },
    });
    expect(seen?.page).toEqual({ from: 0, limit: 100, next: 100 });
  });

  it('leads to the next one, and the last one to none', async () => {
    const { pager } = scene(1_000);
    const ids: number[] = [];
    for (let from: number | null = 0; from !== null; ) {
      const seen = await pager({ from, limit: 300 }).scan(going);
      ids.push(...(seen?.nodes.map(({ id }) => id) ?? []));
      from = seen?.page?.next ?? null;
    }
    expect(ids).toEqual(Array.from({ length: 1_000 }, (_, id) => id));
  });

  it('may have the held ids only, or the free ones, wherever they are', async () => {
    const { pager, asked, write } = scene(1_000);
    for (const id of [5, 700, 701, 950]) write(id, heldBy('task'));
    const held = await pager({ only: 'held', limit: 3 }).scan(going);
    expect(held?.nodes.map(({ id }) => id)).toEqual([5, 700, 701]);
    expect(held?.page?.next).toBe(950);
    expect(asked()).toEqual(['list', 'cluster.json', '5.json', '700.json', '701.json']);
    const free = await pager({ only: 'free', from: 699, limit: 2 }).scan(going);
    expect(free?.nodes.map(({ id }) => id)).toEqual([699, 702]);
  });

  it('trusts its reads more than the LIST', async () => {
    const { pager, write, beforeRead } = scene(1_000);
    write(3, heldBy('task'));
    write(4, heldBy('task'));
    beforeRead((key) => {
      if (key === '3.json') write(3, released(heldBy('task'), undefined, 0));
    });
    const seen = await pager({ only: 'held' }).scan(going);
    expect(seen?.nodes.map(({ id }) => id)).toEqual([4]);
  });

  it('has the most noteworthy ids on request', async () => {
    const { pager, write, bucket, clock } = scene(1_000);
    write(900, heldBy('dead'));
    await clock.advance(17_000);
    write(800, heldBy('alive'));
    write(850, released(heldBy('gone'), undefined, 0));
    bucket.remove('950.json');
    const seen = await pager({ telling: true, limit: 5 }).scan(going);
    expect(seen?.nodes.map(({ id, state }) => [id, state])).toEqual([
      [0, 'vacant'],
      [800, 'held'],
      [850, 'released'],
      [900, 'expired'],
      [950, 'absent'],
    ]);
  });

  it('costs in a second scan only the reads of what was written meanwhile', async () => {
    const { pager, asked, write } = scene(10_000);
    for (let id = 0; id < 10_000; id += 1) write(id, heldBy('task'));
    const page = pager({ from: 5_000 });
    await page.scan(going);
    asked();
    for (const id of [3, 5_001, 5_099, 5_100]) write(id, heldBy('task', 1));
    const seen = await page.scan(going);
    expect(asked()).toEqual(['list', '5001.json', '5099.json']);
    expect(seen?.nodes).toHaveLength(100);
  });

  it('cannot begin beyond the cluster', async () => {
    const { pager } = scene(1_000);
    await expect(pager({ from: 1_000 }).scan(going)).rejects.toThrow(ConfigError);
    await expect(pager({ from: 1_000 }).scan(going)).rejects.toThrow(
      'from: expected a node id of the cluster, from 0 to 999, got 1000',
    );
  });
});

describe('a cluster that is not large', () => {
  it('is read as a whole, so that its totals are no hints', async () => {
    const { pager, asked, write } = scene(500);
    write(3, { kind: 'released', version: 2, timestamp: 1, durationMs: 15_000, stampedUntil: undefined });
    const seen = await pager().scan(going);
    expect(asked()).toHaveLength(502);
    expect(seen?.nodes).toHaveLength(500);
    expect(seen?.totals).toMatchObject({ hints: false, evicted: 1, free: 499 });
    expect(seen?.page).toBeNull();
  });

  it('is read a page at a time on request', async () => {
    const { pager, asked } = scene(16);
    const seen = await pager({ paged: true, from: 4, limit: 2 }).scan(going);
    expect(asked()).toEqual(['list', 'cluster.json', '4.json', '5.json']);
    expect(seen?.page).toEqual({ from: 4, limit: 2, next: 6 });
  });
});

describe('a cluster that has shrunk', () => {
  it('has holders of ids that it has given up, and counts the retired ones', async () => {
    const { pager, asked, write } = scene(6, { size: 2, generation: 1 });
    write(2, heldBy('late'));
    for (const id of [3, 4]) write(id, retired({ kind: 'vacant' }, 1));
    write(5, heldBy('later'));
    const pages = pager();
    const seen = await pages.scan(going);
    expect(seen?.nodes.map(({ id }) => id)).toEqual([0, 1]);
    expect(seen?.draining.map(({ id, taskId }) => [id, taskId])).toEqual([
      [2, 'late'],
      [5, 'later'],
    ]);
    expect(seen?.totals).toMatchObject({ free: 2, retired: 2 });
    // Its holder renews it, which changes nothing.
    write(2, heldBy('late', 1));
    write(5, retired(released(heldBy('later'), undefined, 0), 1));
    asked();
    expect((await pages.scan(going))?.draining.map(({ id }) => id)).toEqual([2]);
    expect(asked()).toEqual(['list']);
  });

  it('does not name a holder that releases the id at this moment', async () => {
    const { pager, write, beforeRead } = scene(3, { size: 1, generation: 1 });
    for (const id of [1, 2]) write(id, heldBy('late'));
    beforeRead((key) => {
      if (key === '1.json') write(1, retired(released(heldBy('late'), undefined, 0), 1));
    });
    expect((await pager().scan(going))?.draining.map(({ id }) => id)).toEqual([2]);
  });

  it('shows them as released once it has grown again, without a write to them', async () => {
    const { pager, asked, write, settle } = scene(6, { size: 2, generation: 1 });
    for (const id of [2, 3, 4, 5])
      write(id, retired({ kind: 'released', version: 7, timestamp: 1, durationMs: 0, stampedUntil: 1 }, 1));
    const pages = pager();
    await pages.scan(going);
    settle({ size: 6, generation: 2 });
    asked();
    const seen = await pages.scan(going);
    expect(seen?.nodes.map(({ state, version }) => `${state} ${version}`)).toEqual([
      'vacant 0',
      'vacant 0',
      ...Array(4).fill('released 7'),
    ]);
    expect(seen?.totals).toMatchObject({ free: 6, retired: 0 });
    expect(asked()).toEqual(['list', 'cluster.json', '2.json', '3.json', '4.json', '5.json']);
  });
});
