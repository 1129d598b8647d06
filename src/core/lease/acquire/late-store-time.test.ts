import { expect, it } from 'vitest';
import { seededRandom, VirtualClock } from '../../../../test/support/virtual-clock.js';
import { MemoryBucket } from '../../store/memory/memory-bucket.js';
import { MemoryLeaseStore } from '../../store/memory/memory-lease-store.js';
import { decodeCluster } from '../model/cluster-config.js';
import { nativeCodec } from '../model/lease-codec.js';
import { initializeCluster, repairCluster } from '../operate/initialize.js';
import { scaleCluster } from '../operate/scale.js';
import { StoreSession } from '../session/store-session.js';
import { acquireLease } from './acquire-lease.js';

// A store with times in whole seconds may report them two seconds late, as some S3 servers do. If a tenure
// did not record its last id timestamp, its holder may have renewed just now. It may then use timestamps a
// whole duration ahead.

const DURATION = 15_000;
const LATE_MS = 2_000;

const late = <T extends { readonly storeTime: { min: number; max: number } }>(reply: T): T => ({
  ...reply,
  storeTime: { min: reply.storeTime.min - LATE_MS, max: reply.storeTime.max - LATE_MS },
});

class LateStore extends MemoryLeaseStore {
  override async read(...call: Parameters<MemoryLeaseStore['read']>) {
    const object = await super.read(...call);
    return object && late(object);
  }

  override async list(...call: Parameters<MemoryLeaseStore['list']>) {
    return late(await super.list(...call));
  }

  override async create(...call: Parameters<MemoryLeaseStore['create']>) {
    const result = await super.create(...call);
    return result.status === 'written' ? late(result) : result;
  }

  override async replace(...call: Parameters<MemoryLeaseStore['replace']>) {
    const result = await super.replace(...call);
    return result.status === 'written' ? late(result) : result;
  }
}

/** A cluster in which the tenure of node id 0 did not record its last id timestamp. */
async function cluster() {
  const clock = new VirtualClock();
  const bucket = new MemoryBucket(clock, 1_000);
  const wanted = { nodes: 4, durationMs: DURATION, graceMs: 1_000 };
  const session = new StoreSession(new MemoryLeaseStore({ clock }, bucket), clock, 1_000);
  await initializeCluster({ session, clock, random: seededRandom(9), wanted });
  const { body, metadata } = nativeCodec.encode({
    kind: 'released',
    version: 7,
    timestamp: 0,
    durationMs: 0,
    stampedUntil: undefined,
  });
  bucket.replace('0.json', body, metadata, bucket.read('0.json')?.etag ?? '');
  return { clock, bucket, store: new LateStore({ clock }, bucket) };
}

it('a new tenure makes ids after all that the previous tenure may have made', async () => {
  const { clock, store } = await cluster();
  const begun = clock.now();
  const lease = await acquireLease({ store, clock, random: seededRandom(1), taskId: 'a' });
  expect(lease).toMatchObject({ id: 0, version: 8 });
  expect(lease.tenureTime?.after).toBeGreaterThanOrEqual(begun + DURATION);
  await lease.release();
});

it('wider ids begin after all narrower ones that may have been made', async () => {
  const { clock, bucket, store } = await cluster();
  const begun = clock.now();
  const scaling = scaleCluster({
    session: new StoreSession(store, clock, 1_000),
    clock,
    random: seededRandom(1),
    size: 300,
  });
  await clock.advance(60_000);
  await scaling;
  expect(decodeCluster(bucket.read('cluster.json')?.body ?? '').idFloor).toBeGreaterThanOrEqual(
    begun + DURATION,
  );
});

it('a repaired node id makes ids after all that the holder of the lost object may have made', async () => {
  const { clock, bucket, store } = await cluster();
  bucket.remove('2.json');
  await repairCluster({ session: new StoreSession(store, clock, 1_000), clock, aboveVersion: 7 });
  const { timestamp } = JSON.parse(bucket.read('2.json')?.body ?? '{}') as { timestamp: number };
  expect(timestamp).toBeGreaterThanOrEqual(clock.now() + DURATION);
});
