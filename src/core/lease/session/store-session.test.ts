import { expect, it } from 'vitest';
import { seededRandom, VirtualClock } from '../../../../test/support/virtual-clock.js';
import { MemoryBucket } from '../../store/memory/memory-bucket.js';
import { type MemoryIntercept, MemoryLeaseStore } from '../../store/memory/memory-lease-store.js';
import { acquireLease } from '../acquire/acquire-lease.js';
import { encodeCluster, newCluster } from '../model/cluster-config.js';
import { nativeCodec } from '../model/lease-codec.js';
import { leaseKey } from '../model/lease-state.js';
import { StoreSession } from './store-session.js';

// A listing of a large cluster takes long. The store must not count as unreachable because of that.

const NODES = 10_000;
const LISTING_MS = 20_000;

function largeCluster() {
  const clock = new VirtualClock();
  const bucket = new MemoryBucket(clock, 1);
  const vacant = nativeCodec.encode({ kind: 'vacant' });
  for (let id = 0; id < NODES; id += 1) bucket.create(leaseKey(id), vacant.body, vacant.metadata);
  const settings = { ...newCluster({ nodes: NODES, durationMs: 3_600_000 }), bootstrapped: true };
  bucket.create('cluster.json', encodeCluster(settings), {});
  const slowly: MemoryIntercept = async (call, apply) => {
    await clock.sleep(call.operation === 'list' ? LISTING_MS : 10);
    return apply();
  };
  return { clock, store: new MemoryLeaseStore({ clock, intercept: slowly }, bucket) };
}

it.each([
  ['that knows how large the cluster is', NODES],
  ['that does not', undefined],
])('a task %s gets an id where a listing takes 20 s', async (_, nodes) => {
  const { clock, store } = largeCluster();
  const lease = acquireLease({
    store,
    clock,
    random: seededRandom(1),
    taskId: 'a',
    ...(nodes !== undefined && { nodes }),
  });
  lease.catch(() => undefined);
  await clock.advance(3 * LISTING_MS);
  expect((await lease).id).toBeLessThan(NODES);
});

it('a listing gets as long as any request, more time for more objects, and a minute at most', () => {
  const session = new StoreSession(largeCluster().store, new VirtualClock(), 4_000);
  const limits = [0, 1_000, 10_000, 65_528].map((count) => {
    session.expectObjects(count);
    return session.listTimeoutMs;
  });
  expect(limits).toEqual([4_000, 4_000, 30_000, 60_000]);
});

it('a listing that ran out of time gets twice as long the next time: a lost reply costs no more than any other', async () => {
  const { clock, store } = largeCluster();
  const session = new StoreSession(store, clock, 4_000);
  const limits: number[] = [];
  for (let times = 0; times < 4; times += 1) {
    const listing = session.list().catch(() => limits.push(session.listTimeoutMs));
    await clock.advance(LISTING_MS + 1_000);
    await listing;
  }
  expect(limits).toEqual([8_000, 16_000, 32_000]);
});

it('what lost replies of listings added is taken back by a listing that is answered', async () => {
  const clock = new VirtualClock();
  let lost = true;
  const intercept: MemoryIntercept = async (_, apply) => (lost ? new Promise(() => undefined) : apply());
  const session = new StoreSession(new MemoryLeaseStore({ clock, intercept }), clock, 4_000);
  session.list().catch(() => undefined);
  await clock.advance(4_000);
  expect(session.listTimeoutMs).toBe(8_000);
  lost = false;
  await session.list();
  expect(session.listTimeoutMs).toBe(4_000);
});
