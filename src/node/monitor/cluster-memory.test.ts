import { describe, expect, it } from 'vitest';
import { settledHeap } from '../../../bench/settled-heap.js';
import { seededRandom, VirtualClock } from '../../../test/support/virtual-clock.js';
import { nativeCodec } from '../../core/lease/model/lease-codec.js';
import { acquired, leaseKey } from '../../core/lease/model/lease-state.js';
import { initializeCluster } from '../../core/lease/operate/initialize.js';
import { inspectCluster } from '../../core/lease/operate/inspect.js';
import { StoreSession } from '../../core/lease/session/store-session.js';
import { MemoryBucket } from '../../core/store/memory/memory-bucket.js';
import { MemoryLeaseStore } from '../../core/store/memory/memory-lease-store.js';
import { scanPage } from './cluster-page.js';
import { ClusterReader } from './cluster-reader.js';

const MB = 1024 * 1024;
const going = new AbortController().signal;
const everything = { everything: true, paged: false, limit: 100, telling: false };

async function scene(nodes: number) {
  const clock = new VirtualClock();
  const bucket = new MemoryBucket(clock, 1);
  const session = new StoreSession(new MemoryLeaseStore({ clock }, bucket), clock, 60_000);
  await initializeCluster({
    session,
    clock,
    random: seededRandom(1),
    wanted: { nodes, durationMs: 15_000, graceMs: 1_000 },
  });
  return { clock, bucket, session };
}

describe('the memory that a large cluster takes', () => {
  it('is no more than a few megabytes for its 10,000 objects in the memory store, and for reading them all', async () => {
    const before = await settledHeap();
    const { clock, session } = await scene(10_000);
    const created = await settledHeap();
    const reader = new ClusterReader(session, clock);
    const seen = await scanPage(reader, everything, going);
    const read = await settledHeap();
    expect(seen?.nodes).toHaveLength(10_000);
    expect((created - before) / MB).toBeLessThan(20);
    expect((read - created) / MB).toBeLessThan(20);
    await scanPage(reader, everything, going);
    expect(((await settledHeap()) - read) / MB).toBeLessThan(10);
  });

  it('does not grow by the square of their number if all know all', async () => {
    const nodes = 1_200;
    const { clock, bucket, session } = await scene(nodes);
    const known = Object.fromEntries(Array.from({ length: nodes }, (_, id) => [id, 1]));
    for (let id = 0; id < nodes; id += 1) {
      const claim = {
        taskId: `task-${id}`,
        nonce: 'n',
        durationMs: 15_000,
        storeNow: 5,
        stampedUntil: 0,
        idWidth: 11,
      };
      const { body, metadata } = nativeCodec.encode({
        ...acquired({ kind: 'vacant' }, claim),
        knownNodes: known,
      });
      bucket.replace(leaseKey(id), body, metadata, bucket.read(leaseKey(id))?.etag ?? '');
    }
    const before = await settledHeap();
    const reader = new ClusterReader(session, clock);
    const seen = await scanPage(reader, everything, going);
    const grown = ((await settledHeap()) - before) / MB;
    expect(Object.keys(seen?.nodes[7]?.knownNodes ?? {})).toHaveLength(nodes);
    expect(grown).toBeLessThan(5);
    const status = await inspectCluster(session);
    expect((await settledHeap()) / MB - before / MB - grown).toBeLessThan(5);
    expect(status?.nodes).toHaveLength(nodes);
  });
});
