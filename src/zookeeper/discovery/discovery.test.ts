import { getEventListeners } from 'node:events';
import { describe, expect, it } from 'vitest';
import { fails, ScriptedZooKeeper, SESSION_MS } from '../../../test/support/scripted-zookeeper.js';
import { seededRandom, VirtualClock } from '../../../test/support/virtual-clock.js';
import { staticLease } from '../../core/lease/hold/static-lease.js';
import type { SessionState } from '../client/session-state.js';
import { Discovery, type DiscoveryEvent } from './discovery.js';

// The tree and the registration for Curator's readers, reported as one. Real servers are tested elsewhere.

const CONNECTED: SessionState = { status: 'connected', sessionId: 'a', timeoutMs: SESSION_MS, server: 'x:1' };

async function discover() {
  const clock = new VirtualClock();
  const zookeeper = new ScriptedZooKeeper(clock);
  const events: DiscoveryEvent[] = [];
  const discovery = new Discovery({
    ...{
      zookeeper,
      clock,
      random: seededRandom(1),
      lease: staticLease({ id: 0, taskId: 'task' }),
      origin: 'static',
      leases: undefined,
    },
    ...{
      announcement: { service: 'orders', address: 'host', port: 80 },
      announcesNode: true,
      readyTimeoutMs: 60_000,
    },
    onEvent: (event) => events.push(event),
  });
  const reported = () =>
    events.flatMap((event) => (event.type === 'synced' || event.type === 'degraded' ? [event] : []));
  return { clock, zookeeper, discovery, reported };
}

/** Calls that concern this part of the tree fail. */
const failing = (part: string) => async (_operation: string, path: string) => {
  if (path.startsWith(part)) throw fails('no-auth', 'not-applied');
};

describe('a discovery', () => {
  it('is synced when both the tree and the registration are, degraded when one is not, and closed at its end', async () => {
    const { clock, zookeeper, discovery } = await discover();
    zookeeper.fault = failing('/services');
    await clock.advance(0);
    expect(discovery.state).toMatchObject({
      status: 'degraded',
      problem: expect.stringContaining('no-auth'),
    });
    zookeeper.fault = undefined;
    await clock.advance(2_000);
    expect(discovery.state).toEqual({ status: 'synced' });
    zookeeper.become({ status: 'suspended', sessionId: 'a', timeoutMs: SESSION_MS });
    expect(discovery.state).toMatchObject({ status: 'degraded', problem: 'no connection to scripted' });
    await discovery.close();
    expect(discovery.state).toEqual({ status: 'closed' });
    await expect(discovery.synced(1_000)).rejects.toMatchObject({ fault: 'closed' });
  });

  it('reports each problem once, and the end of all of them when none is left', async () => {
    const { clock, zookeeper, reported } = await discover();
    zookeeper.fault = failing('/services');
    await clock.advance(500);
    expect(reported()).toEqual([{ type: 'degraded', problem: expect.stringContaining('no-auth') }]);
    zookeeper.fault = undefined;
    await clock.advance(2_000);
    zookeeper.become({ status: 'suspended', sessionId: 'a', timeoutMs: SESSION_MS });
    zookeeper.become(CONNECTED);
    await clock.advance(2_000);
    const [, ...later] = reported();
    expect(later).toEqual([
      { type: 'synced' },
      { type: 'degraded', problem: 'no connection to scripted' },
      { type: 'synced' },
    ]);
  });

  it.each([
    ['everything is there', undefined],
    ['the time is over', 'timeout'],
    ['the caller gives up', 'enough'],
  ] as const)('is waited for until %s, and no listener and no timer is left behind', async (_, end) => {
    const { clock, zookeeper, discovery } = await discover();
    zookeeper.fault = failing('/services');
    await clock.advance(0);
    const giveUp = new AbortController();
    const before = clock.sleepers;
    const pending = discovery.synced(5_000, giveUp.signal).then(
      () => undefined,
      (error: { fault?: string; message: string }) => error.fault ?? error.message,
    );
    expect([getEventListeners(giveUp.signal, 'abort').length, clock.sleepers]).toEqual([1, before + 1]);
    if (end === undefined) zookeeper.fault = undefined;
    if (end === 'enough') giveUp.abort(new Error('enough'));
    await clock.advance(end === 'timeout' ? 5_000 : 2_000);
    expect(await pending).toBe(end);
    expect(getEventListeners(giveUp.signal, 'abort').length).toBe(0);
    await discovery.close();
    expect([clock.sleepers, zookeeper.watches.size, zookeeper.listeners.size]).toEqual([0, 0, 0]);
  });
});
