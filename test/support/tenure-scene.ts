import { acquireLease } from '../../src/core/lease/acquire/acquire-lease.js';
import type { Lease } from '../../src/core/lease/model/lease.js';
import { evictHolder } from '../../src/core/lease/operate/evict.js';
import { StoreSession } from '../../src/core/lease/session/store-session.js';
import { MemoryBucket } from '../../src/core/store/memory/memory-bucket.js';
import { MemoryLeaseStore } from '../../src/core/store/memory/memory-lease-store.js';
import { seededRandom, VirtualClock } from './virtual-clock.js';

/** A tenure, as the test has seen it. */
export interface SeenTenure {
  readonly id: number;
  readonly version: number;
  readonly taskId: string;
  readonly from: number;
  until: number;
  end: string | null;
}

/** How long requests take, here and back, in milliseconds. */
const REQUEST_MS = 40;

/** Five ids, and forty tenures on them that end in every way, in virtual time. @param at when it begins */
export async function tenureScene(at?: number) {
  const clock = new VirtualClock();
  if (at !== undefined) clock.wallOffset = at;
  const bucket = new MemoryBucket(clock, 1);
  const random = seededRandom(7);
  const session = new StoreSession(new MemoryLeaseStore({ clock }, bucket), clock, 1_000);
  const seen: SeenTenure[] = [];
  const held: { lease: Lease; record: SeenTenure; kill: () => void }[] = [];
  const start = async () => {
    let isDead = false;
    const intercept = async <T>(_: unknown, apply: () => T) => {
      await clock.sleep(REQUEST_MS / 2);
      if (isDead) return new Promise<T>(() => undefined);
      const reply = apply();
      await clock.sleep(REQUEST_MS / 2);
      return reply;
    };
    const taskId = `task-${seen.length + 1}`;
    const acquiring = acquireLease({
      ...{ clock, random, taskId, nodes: 5, durationMs: 4_000 },
      store: new MemoryLeaseStore({ clock, intercept }, bucket),
    });
    await clock.advance(6_000);
    const lease = await acquiring;
    const { id, version } = lease;
    const record: SeenTenure = { id, version, taskId, from: clock.now() - 6_000, until: Infinity, end: null };
    seen.push(record);
    held.push({ lease, record, kill: () => (isDead = true) });
  };
  const endOne = async (end: string) => {
    const [one] = held.splice(Math.floor(random.next() * held.length), 1);
    if (one === undefined) return;
    const { lease, record, kill } = one;
    if (end === 'evicted') await evictHolder(session, record.id);
    if (end === 'expired') kill();
    const released = end === 'released' ? lease.release() : undefined;
    Object.assign(record, { until: clock.now(), end });
    await clock.advance(end === 'released' ? 1_000 : 9_000);
    await released;
  };
  for (let tenure = 0; tenure < 40; tenure += 1) {
    if (held.length === 5 || (held.length > 0 && random.next() < 0.4))
      await endOne(['released', 'expired', 'evicted'][tenure % 3] as string);
    await start();
  }
  return { clock, random, seen, session };
}
