import { expect, it } from 'vitest';
import { seededRandom, VirtualClock } from '../../../../test/support/virtual-clock.js';
import { type MemoryIntercept, MemoryLeaseStore } from '../../store/memory/memory-lease-store.js';
import { probeStore } from '../../store/probe/probe.js';
import { decodeCluster } from '../model/cluster-config.js';
import type { LeaseEvent } from '../model/lease.js';
import { initializeCluster } from '../operate/initialize.js';
import { scaleCluster } from '../operate/scale.js';
import { StoreSession } from '../session/store-session.js';
import { acquireLease } from './acquire-lease.js';

// A listing of all objects of a large cluster may take seconds, while a request takes milliseconds.

const LISTING_MS = 6_000;

function slowlyListed() {
  const clock = new VirtualClock();
  const intercept: MemoryIntercept = async (call, apply) => {
    await clock.sleep(call.operation === 'list' ? LISTING_MS : 10);
    return apply();
  };
  const store = new MemoryLeaseStore({ clock, intercept });
  const session = () => new StoreSession(store, clock, 3_000);
  /** The result within some minutes. */
  const ended = async <T>(work: Promise<T>): Promise<T> => {
    work.catch(() => undefined);
    await clock.advance(300_000);
    return work;
  };
  return { clock, store, session, ended, random: seededRandom(1) };
}

it('a task gets an id, and completes the bootstrap, where a listing takes 6 s', async () => {
  const { clock, store, session, ended, random } = slowlyListed();
  const events: LeaseEvent[] = [];
  const onEvent = (event: LeaseEvent) => void events.push(event);
  const lease = await ended(acquireLease({ store, clock, random, taskId: 'a', nodes: 4, onEvent }));
  expect(events.map(({ type }) => type)).toContain('bootstrapped');
  expect(lease.isValid()).toBe(true);
  const settings = await ended(session().read('cluster.json'));
  expect(decodeCluster(settings?.body ?? '').bootstrapped).toBe(true);
  await ended(lease.release());
});

it('a cluster is created, grows and shrinks where a listing takes 6 s', async () => {
  const { clock, session, ended, random } = slowlyListed();
  const created = await ended(initializeCluster({ session: session(), clock, random, wanted: { nodes: 4 } }));
  expect(created.created).toHaveLength(4);
  const scale = (size: number) => ended(scaleCluster({ session: session(), clock, random, size }));
  expect(await scale(8)).toMatchObject({ kind: 'scaled', from: 4, to: 8, created: 4 });
  expect(await scale(2)).toMatchObject({ kind: 'scaled', from: 8, to: 2, retired: 6 });
});

it('a store passes the probe where a listing takes 6 s', async () => {
  const { clock, store, ended, random } = slowlyListed();
  expect(await ended(probeStore(store, { clock, random }))).toMatchObject({ ok: true });
});
