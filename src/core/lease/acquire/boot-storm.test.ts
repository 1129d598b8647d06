import { describe, expect, it } from 'vitest';
import { inPages } from '../../../../test/support/in-pages.js';
import { seededRandom, VirtualClock } from '../../../../test/support/virtual-clock.js';
import { MemoryBucket } from '../../store/memory/memory-bucket.js';
import {
  type MemoryCall,
  type MemoryIntercept,
  MemoryLeaseStore,
} from '../../store/memory/memory-lease-store.js';
import { encodeCluster, newCluster } from '../model/cluster-config.js';
import type { Lease } from '../model/lease.js';
import { nativeCodec } from '../model/lease-codec.js';
import { type LeaseState, leaseKey } from '../model/lease-state.js';
import { acquireLease } from './acquire-lease.js';

// The cost of a node id, which does not grow with the number of tasks that start at the same time.

const RELEASED: LeaseState = {
  kind: 'released',
  version: 7,
  timestamp: 1,
  durationMs: 0,
  stampedUntil: undefined,
};
const HELD: LeaseState = {
  ...{ kind: 'held', taskId: 'other', version: 7, timestamp: 1, durationMs: 15_000, knownNodes: {} },
  ...{ nonce: '00', renewal: 0, acquiredAt: 0, idWidth: 16, narrowIdsUntil: 0 },
};

interface Fleet {
  readonly size: number;
  /** The content of each id's object. Without it there is no cluster. */
  readonly state?: ((id: number) => LeaseState) | undefined;
  readonly remote?: boolean;
  /** Number of keys in a page of a listing, if the store lists in pages. */
  readonly page?: number;
}

/** A cluster in virtual time that counts its requests. */
function fleet({ size, state, remote = false, page }: Fleet) {
  const clock = new VirtualClock();
  const bucket = new MemoryBucket(clock, 1);
  if (state !== undefined) {
    bucket.create('cluster.json', encodeCluster({ ...newCluster({ nodes: size }), bootstrapped: true }), {});
    for (let id = 0; id < size; id += 1) {
      const { body, metadata } = nativeCodec.encode(state(id));
      bucket.create(leaseKey(id), body, metadata);
    }
  }
  const start = (seed: number) => {
    const asked: string[] = [];
    const network: MemoryIntercept = async (call, apply) => {
      asked.push(named(call));
      await clock.sleep(10 + seed / 100);
      const reply = apply();
      await clock.sleep(10);
      return reply;
    };
    const client = new MemoryLeaseStore({ clock, remote, intercept: network }, bucket);
    const store = page === undefined ? client : inPages(client, page);
    const ready = acquireLease({
      store,
      clock,
      random: seededRandom(seed),
      taskId: `task-${seed}`,
      nodes: size,
    });
    ready.catch(() => undefined);
    // Later requests, for the bootstrap and the renewals, do not count.
    return ready.then((lease) => ({ lease, asked: [...asked] }));
  };
  return { clock, start };
}

function named(call: MemoryCall): string {
  return call.operation === 'list' ? 'list' : `${call.operation} ${call.key}`;
}

/** Lets `count` tasks start at once. */
async function storm(
  options: Fleet,
  starters: number,
): Promise<{ ids: number[]; leases: Lease[]; mean: number; worst: number }> {
  const { clock, start } = fleet(options);
  const started = Array.from({ length: starters }, (_, task) => start(task + 1));
  await clock.advance(4_900);
  const tasks = await Promise.all(started);
  const requests = tasks.map(({ asked }) => asked.length);
  const leases = tasks.map(({ lease }) => lease);
  return {
    ids: leases.map(({ id }) => id).sort((a, b) => a - b),
    leases,
    mean: requests.reduce((sum, n) => sum + n, 0) / starters,
    worst: Math.max(...requests),
  };
}

/** One after the other. */
async function alone(options: Fleet, tasks = 1): Promise<{ ids: number[]; asked: string[] }> {
  const { clock, start } = fleet(options);
  const ids: number[] = [];
  let asked: string[] = [];
  for (let seed = 1; seed <= tasks; seed += 1) {
    const started = start(seed);
    await clock.advance(200);
    const task = await started;
    ids.push(task.lease.id);
    asked = task.asked;
  }
  return { ids, asked };
}

describe('a lone starter', () => {
  it('makes four requests in a cluster that exists', async () => {
    const { asked } = await alone({ size: 3, state: () => RELEASED });
    expect(asked).toEqual(['list', 'read cluster.json', 'read 0.json', 'replace 0.json']);
  });

  it('makes one more on a remote store, which must refuse it', async () => {
    const { asked } = await alone({ size: 3, state: () => RELEASED, remote: true });
    expect(asked).toEqual(['list', 'read cluster.json', 'read 0.json', 'replace 0.json', 'replace 0.json']);
  });

  it('makes three on an empty store: it does not read what it wrote', async () => {
    const { asked } = await alone({ size: 3 });
    expect(asked).toEqual(['list', 'create cluster.json', 'create 0.json']);
  });

  it.each([
    ['small', 20, () => RELEASED],
    ['young', 200, () => ({ kind: 'vacant' }) as const],
  ] as const)('gets the lowest free id of a %s cluster', async (_, size, state) => {
    expect((await alone({ size, state }, 3)).ids).toEqual([0, 1, 2]);
  });

  it('lists no more of a large cluster than it takes to find a free id', async () => {
    const { asked } = await alone({ size: 5_000, state: () => RELEASED, page: 1_000 });
    expect(asked.map((request) => request.split(' ')[0])).toEqual(['list', 'read', 'read', 'replace']);
  });

  it('continues the listing through all pages if a part of a large cluster has no candidate', async () => {
    const { ids, asked } = await alone({
      size: 3_000,
      state: (id) => (id === 2_999 ? RELEASED : HELD),
      page: 1_000,
    });
    expect(ids).toEqual([2_999]);
    expect(asked.filter((request) => request === 'list').length).toBeLessThanOrEqual(5);
  });
});

describe('all tasks that start together get different ids, within few requests each', () => {
  it.each([
    ['empty', 10, undefined, 5.5],
    ['empty', 100, undefined, 5.5],
    ['just released', 100, () => RELEASED, 5.8],
    ['just released', 400, () => RELEASED, 5.8],
    ['initialised', 100, () => ({ kind: 'vacant' }) as const, 8],
  ] as const)('%s cluster, %i starters', async (_, starters, state, most) => {
    const { ids, leases, mean, worst } = await storm({ size: starters, state }, starters);
    expect(ids).toEqual(Array.from({ length: starters }, (_, id) => id));
    expect(new Set(leases.map(({ version }) => version)).size).toBe(1);
    expect(mean).toBeLessThan(most);
    expect(worst).toBeLessThan(30);
  });

  it('cluster that is half full, 200 starters', async () => {
    const { ids, mean } = await storm({ size: 400, state: (id) => (id % 2 === 0 ? HELD : RELEASED) }, 200);
    expect(ids).toEqual(Array.from({ length: 200 }, (_, index) => 2 * index + 1));
    expect(mean).toBeLessThan(5.8);
  });

  it('cluster of many pages with as many free ids as starters', async () => {
    const { ids, mean } = await storm(
      { size: 4_000, state: (id) => (id % 200 === 0 ? RELEASED : HELD), page: 100 },
      20,
    );
    expect(ids).toEqual(Array.from({ length: 20 }, (_, index) => 200 * index));
    // The whole listing alone takes 41 requests.
    expect(mean).toBeLessThan(41);
  });
});
