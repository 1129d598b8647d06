import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { shrinkSettings } from '../../../test/support/shrunk-cluster.js';
import { seededRandom, VirtualClock } from '../../../test/support/virtual-clock.js';
import { acquireLease } from '../../core/lease/acquire/acquire-lease.js';
import { staticLease } from '../../core/lease/hold/static-lease.js';
import type { LeaseEvent } from '../../core/lease/model/lease.js';
import { evictHolder } from '../../core/lease/operate/evict.js';
import { StoreSession } from '../../core/lease/session/store-session.js';
import { StoreError } from '../../core/store/lease-store.js';
import { MemoryBucket } from '../../core/store/memory/memory-bucket.js';
import { MemoryLeaseStore } from '../../core/store/memory/memory-lease-store.js';
import type { Discovery } from '../../zookeeper/discovery/discovery.js';
import { type MonitorEvent, NodeMonitor } from './node-monitor.js';

const DURATION = 15_000;
const ACQUIRED: LeaseEvent = {
  type: 'acquired',
  id: 3,
  version: 7,
  from: 'vacant',
  tookMs: 1,
  requests: 5,
  deadline: DURATION,
};
const lostReply = new StoreError('no answer', { fault: 'unreachable', outcome: 'unknown' });

/** A monitor, and a real lease on a store that can be made to fail. */
function watched() {
  const clock = new VirtualClock();
  const monitor = new NodeMonitor();
  const events: MonitorEvent[] = [];
  monitor.onEvent((event) => events.push(event));
  const network = { isDown: false };
  const bucket = new MemoryBucket(clock, 1);
  const direct = new MemoryLeaseStore({ clock }, bucket);
  const store = direct.connect(async (_call, apply) => {
    if (network.isDown) throw lostReply;
    return apply();
  });
  const wanted = { clock, random: seededRandom(1), store, durationMs: DURATION, graceMs: 1_000 };
  const acquire = async (nodes = 1) => {
    const lease = await acquireLease({ ...wanted, taskId: 'task', nodes, onEvent: monitor.onLeaseEvent });
    monitor.hold(lease);
    await clock.advance(500);
    return lease;
  };
  /** In a cluster of two node ids, of which another task holds the first one. */
  const acquireSecond = async () => {
    await acquireLease({ ...wanted, taskId: 'first', nodes: 2 });
    return acquire(2);
  };
  return {
    clock,
    monitor,
    events,
    network,
    bucket,
    acquire,
    acquireSecond,
    session: new StoreSession(direct, clock, 1_000),
  };
}

const phases = (events: readonly MonitorEvent[]) =>
  events.flatMap((event) => (event.type === 'phase' ? [event.phase] : []));

describe('the health of a process', () => {
  it('begins without a node id: live, but not ready', () => {
    const { monitor } = watched();
    expect(monitor.health()).toEqual({
      ...{ state: 'acquiring', live: true, ready: false, reason: 'a node id is being acquired' },
      ...{
        retiring: false,
        nodeId: null,
        version: null,
        taskId: null,
        deadline: null,
        idWidth: null,
        discovery: null,
      },
    });
  });

  it('says why it still waits: no id is free, or the store fails', () => {
    const { monitor } = watched();
    monitor.onLeaseEvent({ type: 'waiting', sleepMs: 1 });
    expect(monitor.health().reason).toBe('no node id is free: waiting');
    monitor.onLeaseEvent({ type: 'waiting', sleepMs: 1, why: 'ids are narrow' });
    expect(monitor.health().reason).toBe('ids are narrow');
    monitor.onLeaseEvent({ type: 'store-failed', error: lostReply, sleepMs: 1 });
    expect(monitor.health()).toMatchObject({
      live: true,
      ready: false,
      reason: 'the store failed: no answer',
    });
  });

  it('says that the id is being announced between its acquisition and the moment from which it may be used, and not why it waited', () => {
    const { monitor } = watched();
    monitor.onLeaseEvent({ type: 'store-failed', error: lostReply, sleepMs: 1 });
    monitor.onLeaseEvent(ACQUIRED);
    monitor.onLeaseEvent({ type: 'renewed', deadline: DURATION, tookMs: 1 });
    expect(monitor.health()).toMatchObject({ state: 'acquiring', ready: false });
    expect(monitor.health().reason).toBe('node id 3 has been acquired, and is being announced');
  });

  it('keeps the reason for which it takes no more work, whatever happens to the lease or to another one meanwhile', async () => {
    const { monitor, acquire } = watched();
    await acquire();
    monitor.stopping();
    monitor.onLeaseEvent({ type: 'store-failed', error: lostReply, sleepMs: 1 });
    monitor.onLeaseEvent({ type: 'waiting', sleepMs: 1 });
    monitor.onLeaseEvent(ACQUIRED);
    expect(monitor.health().reason).toBe('the work is being ended');
  });

  it('stays stopping if the node id is acquired only then: alive, and never ready', async () => {
    const { clock, monitor, events, acquire } = watched();
    monitor.stopping();
    expect(monitor.health()).toMatchObject({
      state: 'stopping',
      live: true,
      ready: false,
      reason: 'the work is being ended',
      deadline: null,
    });
    const lease = await acquire();
    expect(monitor.health()).toMatchObject({
      state: 'stopping',
      live: true,
      ready: false,
      nodeId: 0,
      deadline: lease.deadline,
    });
    expect(phases(events)).toEqual(['stopping']);
    clock.freeze(DURATION);
    expect(monitor.health()).toMatchObject({ state: 'lost', live: false });
  });

  it('shows the lease with its deadline while it is held', async () => {
    const { clock, monitor, acquire } = watched();
    const lease = await acquire();
    expect(monitor.health()).toEqual({
      ...{ state: 'held', live: true, ready: true, reason: null, nodeId: 0, version: 1, taskId: 'task' },
      ...{ retiring: false, deadline: lease.deadline, idWidth: 8, discovery: null },
    });
    await clock.advance(DURATION);
    expect(monitor.health().deadline).toBe(lease.deadline);
    expect(lease.deadline).toBeGreaterThan(DURATION);
  });

  it('says in its first answer after a pause that the lease is over, before anything else has noticed', async () => {
    const { clock, monitor, events, acquire } = watched();
    const lease = await acquire();
    clock.freeze(DURATION);
    expect(monitor.health()).toMatchObject({
      state: 'lost',
      live: false,
      ready: false,
      nodeId: 0,
      deadline: null,
    });
    expect(monitor.health().reason).toMatch(/no renewal came through before its deadline/);
    expect([lease.signal.aborted, phases(events)]).toEqual([false, ['held']]);
    await clock.advance(1);
    expect(monitor.health()).toMatchObject({ state: 'lost', live: false, ready: false });
    expect([lease.signal.aborted, phases(events)]).toEqual([true, ['held', 'lost']]);
  });

  it('says the same while the work is being ended: what is overdue is lost, not released', async () => {
    const { clock, monitor, acquire } = watched();
    await acquire();
    monitor.stopping();
    clock.freeze(DURATION);
    expect(monitor.health()).toMatchObject({ state: 'lost', live: false });
  });

  it('says so as soon as the lease is lost, and why', async () => {
    const { clock, monitor, events, session, acquire } = watched();
    await acquire();
    await evictHolder(session, 0);
    await clock.advance(DURATION / 2);
    expect(monitor.health()).toMatchObject({ state: 'lost', live: false, ready: false, deadline: null });
    expect(monitor.health().reason).toMatch(/by somebody else/);
    expect(phases(events)).toEqual(['held', 'lost']);
  });

  it('takes no more work once its node id is being retired, and says so for as long as it holds it', async () => {
    const { clock, monitor, events, bucket, acquireSecond } = watched();
    const lease = await acquireSecond();
    expect(monitor.health()).toMatchObject({ ready: true, retiring: false, nodeId: 1 });
    shrinkSettings(bucket, 1);
    await clock.advance(DURATION);
    const reason = 'node id 1 (version 1) is being retired: the cluster has 1 node id now';
    expect(monitor.health()).toMatchObject({
      state: 'held',
      live: true,
      ready: false,
      retiring: true,
      reason,
      deadline: lease.deadline,
    });
    expect(events.filter((event) => event.type === 'lease' && event.event.type === 'retiring')).toHaveLength(
      1,
    );
    monitor.stopping();
    expect(monitor.health()).toMatchObject({
      state: 'stopping',
      live: true,
      ready: false,
      retiring: true,
      reason: 'the work is being ended',
    });
    const releasing = lease.release();
    expect(monitor.health()).toMatchObject({ state: 'released', retiring: false });
    await clock.advance(1_000);
    await releasing;
  });

  it('knows that the node id is being retired where that came before it was handed the lease', async () => {
    const { clock, bucket, acquireSecond } = watched();
    const lease = await acquireSecond();
    shrinkSettings(bucket, 1);
    await clock.advance(DURATION);
    const second = new NodeMonitor();
    second.hold(lease);
    expect(second.health()).toMatchObject({ state: 'held', ready: false, retiring: true });
    clock.freeze(DURATION);
    expect(second.health()).toMatchObject({ state: 'lost', retiring: false });
  });

  it('takes no more work while it is being stopped, and stays alive until it has ended', async () => {
    const { monitor, acquire } = watched();
    const lease = await acquire();
    monitor.stopping();
    monitor.stopping('again');
    expect(monitor.health()).toMatchObject({
      state: 'stopping',
      live: true,
      ready: false,
      reason: 'the work is being ended',
    });
    expect(monitor.health().deadline).toBe(lease.deadline);
  });

  it('says released, and never lost, from the moment in which the release begins', async () => {
    const { clock, monitor, events, network, acquire } = watched();
    const lease = await acquire();
    network.isDown = true;
    const releasing = lease.release();
    expect(monitor.health()).toMatchObject({
      state: 'released',
      live: true,
      ready: false,
      reason: 'the lease has been released',
    });
    await clock.advance(1_000);
    expect(monitor.health()).toMatchObject({ state: 'released', live: true });
    network.isDown = false;
    await clock.advance(3_000);
    await releasing;
    expect(monitor.health()).toMatchObject({ state: 'released', live: true, ready: false, deadline: null });
    expect(phases(events)).toEqual(['held', 'released']);
  });

  it('stays released if the store could not be reached, and says that the lease is left to expire', async () => {
    const { clock, monitor, events, network, acquire } = watched();
    const lease = await acquire();
    network.isDown = true;
    const releasing = lease.release();
    await clock.advance(10_000);
    await releasing;
    expect(monitor.health()).toMatchObject({ state: 'released', live: true });
    expect(monitor.health().reason).toMatch(/left to expire/);
    await clock.advance(DURATION);
    expect(monitor.health()).toMatchObject({ state: 'released', live: true });
    expect(phases(events)).toEqual(['held', 'released']);
  });

  it('keeps the first end: a release after a loss does not hide it', async () => {
    const { clock, monitor, session, acquire } = watched();
    const lease = await acquire();
    await evictHolder(session, 0);
    await clock.advance(DURATION / 2);
    await lease.release();
    monitor.onLeaseEvent({ type: 'released' });
    monitor.stopping();
    expect(monitor.health().state).toBe('lost');
  });

  it('is not live when no node id was acquired', () => {
    const { monitor } = watched();
    monitor.failed(new Error('denied'));
    expect(monitor.health()).toMatchObject({
      state: 'failed',
      live: false,
      ready: false,
      reason: 'denied',
      nodeId: null,
    });
  });

  it('knows a fixed node id, which has no deadline, from its beginning to its release', async () => {
    const monitor = new NodeMonitor();
    const lease = staticLease({ id: 7, taskId: 'web-7' });
    monitor.hold(lease);
    expect(monitor.health()).toMatchObject({
      state: 'held',
      live: true,
      ready: true,
      nodeId: 7,
      version: 1,
      deadline: null,
      idWidth: null,
    });
    await lease.release();
    expect(monitor.health()).toMatchObject({ state: 'released', live: true, ready: false });
  });

  it('knows of a loss that came before it was handed the lease', async () => {
    const { clock, monitor, session, acquire } = watched();
    const lease = await acquire();
    await evictHolder(session, 0);
    await clock.advance(DURATION / 2);
    const second = new NodeMonitor();
    second.hold(lease);
    expect([second.health().state, second.health().reason]).toEqual(['lost', monitor.health().reason]);
  });

  it('is ready only when the other nodes know of a take-over, and not less so when ZooKeeper is away', async () => {
    const { monitor, acquire } = watched();
    const lease = await acquire();
    const discovery = { isReady: false, state: { status: 'synced' } } as {
      isReady: boolean;
      state: Discovery['state'];
    };
    monitor.hold(lease, discovery as Discovery);
    expect(monitor.health()).toMatchObject({
      state: 'held',
      live: true,
      ready: false,
      discovery: { state: 'ok', problem: null, ready: false },
    });
    expect(monitor.health().reason).toMatch(/^taken over .* waiting until the other nodes know of that$/);
    discovery.isReady = true;
    discovery.state = { status: 'degraded', problem: 'no server answers' };
    expect(monitor.health()).toMatchObject({
      ready: true,
      reason: null,
      discovery: { state: 'degraded', problem: 'no server answers', ready: true },
    });
  });
});

describe('the listeners of a monitor', () => {
  const uncaught: unknown[] = [];
  const note = (error: unknown) => uncaught.push(error);
  let others: NodeJS.UncaughtExceptionListener[];
  beforeEach(() => {
    // The test runner's own would fail the run.
    others = process.listeners('uncaughtException');
    process.removeAllListeners('uncaughtException');
    process.on('uncaughtException', note);
    uncaught.length = 0;
  });
  afterEach(() => {
    process.off('uncaughtException', note);
    for (const listener of others) process.on('uncaughtException', listener);
  });

  it('do no harm to the lease or to each other when they throw: the error becomes an uncaught one', async () => {
    const { clock, monitor, events, acquire } = watched();
    monitor.onEvent(() => {
      throw new Error('a bug in a listener');
    });
    const later: string[] = [];
    monitor.onEvent(({ type }) => later.push(type));
    const lease = await acquire();
    await clock.advance(DURATION);
    expect([lease.isValid(), monitor.health().ready]).toEqual([true, true]);
    expect(later).toEqual(events.map(({ type }) => type));
    expect(uncaught).toHaveLength(events.length);
    expect(uncaught[0]).toMatchObject({ message: 'a bug in a listener' });
  });

  it('receive nothing any more once they were removed', async () => {
    const { monitor, acquire } = watched();
    const heard: MonitorEvent[] = [];
    monitor.onEvent((event) => heard.push(event))();
    await acquire();
    expect(heard).toEqual([]);
  });

  it('receive events of discovery, too', () => {
    const { monitor, events } = watched();
    monitor.onDiscoveryEvent({ type: 'degraded', problem: 'away' });
    expect(events).toEqual([{ type: 'discovery', event: { type: 'degraded', problem: 'away' } }]);
  });
});
