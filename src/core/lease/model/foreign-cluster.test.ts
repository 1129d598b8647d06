import { beforeEach, describe, expect, it } from 'vitest';
import { seededRandom, VirtualClock } from '../../../../test/support/virtual-clock.js';
import { MemoryBucket } from '../../store/memory/memory-bucket.js';
import { MemoryLeaseStore } from '../../store/memory/memory-lease-store.js';
import { acquireLease } from '../acquire/acquire-lease.js';
import { initializeCluster, repairCluster } from '../operate/initialize.js';
import { scaleCluster } from '../operate/scale.js';
import { StoreSession } from '../session/store-session.js';
import { findForeign, refuseForeignFolder } from './foreign-cluster.js';

const HELD =
  '{"taskId":"task-A","timestamp":1795350753690,"nodeInstance":{"id":0,"version":1},"knownVersionMappings":{"mappingsByNodeId":{"0":1}}}';

let clock: VirtualClock;
let bucket: MemoryBucket;
let store: MemoryLeaseStore;
let session: StoreSession;

beforeEach(() => {
  clock = new VirtualClock();
  bucket = new MemoryBucket(clock, 1);
  store = new MemoryLeaseStore({ clock }, bucket);
  session = new StoreSession(store, clock, 1_000);
});

/** The objects of Camunda 8 in a bucket: three node ids, the first one held. */
function camunda(marker = true): void {
  bucket.create('0.json', HELD, { taskid: 'task-A', version: '1', acquirable: 'true' });
  for (const id of [1, 2]) bucket.create(`${id}.json`, '', {});
  if (marker) bucket.create('node-ids-initialized', '', {});
}

const everything = () => bucket.list().objects.map(({ key, etag }) => [key, etag]);
const acquire = (own = {}) =>
  acquireLease({ store, clock, random: seededRandom(1), taskId: 'task', acquireTimeoutMs: 0, ...own });
const initialize = () => initializeCluster({ session, clock, random: seededRandom(1), wanted: { nodes: 3 } });
const scale = () => scaleCluster({ session, clock, random: seededRandom(1), size: 5 });

const FOUND =
  /this is a Camunda cluster of 3 node ids \(it has the object node-ids-initialized\): nodelease leaves it as it is/;

describe('a cluster of Camunda 8', () => {
  it('is not adopted: no object is written, and the error names it', async () => {
    camunda();
    const before = everything();
    await expect(acquire()).rejects.toMatchObject({
      code: 'CLUSTER_FOREIGN',
      message: expect.stringMatching(FOUND),
    });
    await expect(initialize()).rejects.toThrow(FOUND);
    await expect(repairCluster({ session, clock, aboveVersion: 9 })).rejects.toThrow(FOUND);
    await expect(scale()).rejects.toThrow(FOUND);
    expect(everything()).toEqual(before);
  });

  it('is recognized by its leases, too, if an early version has not left a marker', async () => {
    camunda(false);
    const before = everything();
    await expect(acquire()).rejects.toThrow(/0\.json is a lease of Camunda 8: nodelease leaves it as it is/);
    await expect(initialize()).rejects.toThrow(/0\.json is a lease of Camunda 8/);
    expect(everything()).toEqual(before);
  });

  it('is recognized by one lease with a body among many without', async () => {
    for (let id = 0; id < 20; id += 1) bucket.create(`${id}.json`, id === 9 ? HELD : '', {});
    await expect(acquire()).rejects.toThrow(/9\.json is a lease of Camunda 8/);
  });

  it('may have a single node id', async () => {
    bucket.create('0.json', '', {});
    bucket.create('node-ids-initialized', '', {});
    await expect(acquire()).rejects.toThrow(/of 1 node id \(/);
  });

  it('is refused as the folder above a store, too, by its marker or by a lease', async () => {
    const refused = () => refuseForeignFolder(session, 'folder:', {});
    await expect(refused()).resolves.toBeUndefined();
    bucket.create('0.json', HELD, {});
    await expect(refused()).rejects.toThrow('0.json is a lease of Camunda 8: nodelease leaves it');
    bucket.create('node-ids-initialized', '', {});
    await expect(refused()).rejects.toThrow(
      'folder:: this is a Camunda cluster (it has the object node-ids-initialized): nodelease leaves it',
    );
  });

  it('is skipped while the cluster has free ids of ours, and refused without a wait if it has none', async () => {
    await initialize();
    bucket.replace(
      '0.json',
      HELD,
      { version: '1', taskid: 'task-A', acquirable: 'true' },
      bucket.read('0.json')?.etag ?? '',
    );
    await clock.advance(60_000);
    const held = [await acquire(), await acquire({ taskId: 'other' })];
    expect(held.map(({ id }) => id).sort()).toEqual([1, 2]);
    const refused = acquire({ taskId: 'third', acquireTimeoutMs: undefined });
    await expect(refused).rejects.toMatchObject({
      code: 'CLUSTER_FOREIGN',
      message: expect.stringContaining('0.json is a lease of Camunda 8'),
    });
  });

  it('is neither repaired nor scaled next to a cluster of ours, and no task takes its ids', async () => {
    await initialize();
    for (const [id, body] of [HELD, '', ''].entries()) {
      const metadata = { version: '1', taskid: body === '' ? '' : 'task-A', acquirable: String(id < 2) };
      bucket.replace(`${id}.json`, body, metadata, bucket.read(`${id}.json`)?.etag ?? '');
    }
    await clock.advance(60_000);
    const before = everything();
    await expect(acquire()).rejects.toThrow(/\d\.json is a lease of Camunda 8: nodelease leaves it as it is/);
    await expect(repairCluster({ session, clock, aboveVersion: 9 })).rejects.toThrow(
      /0\.json is a lease of Camunda 8: nothing is repaired/,
    );
    bucket.create('node-ids-initialized', '', {});
    // A task that would wait is refused, too: the marker is in the listing, whatever task holds the ids.
    await expect(acquire({ acquireTimeoutMs: undefined })).rejects.toThrow(FOUND);
    await expect(repairCluster({ session, clock, aboveVersion: 9 })).rejects.toThrow(FOUND);
    await expect(scale()).rejects.toThrow(FOUND);
    bucket.remove('node-ids-initialized');
    expect(everything()).toEqual(before);
  });
});

it('eight leases at most are read to find another program’s', async () => {
  for (let id = 0; id < 20; id += 1) bucket.create(`${id}.json`, '', {});
  const before = session.requests;
  expect(await findForeign(session, (await session.list()).objects)).toBeUndefined();
  expect(session.requests - before).toBe(1 + 8);
});

it('own leases are not taken for another program’s: a task that finds no cluster.json creates it again', async () => {
  await initialize();
  const lease = await acquire();
  bucket.remove('cluster.json');
  await initialize();
  await clock.advance(10_000);
  expect(lease.isValid()).toBe(true);
  await lease.release();
});
