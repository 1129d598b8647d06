import { describe, expect, it } from 'vitest';
import { seededRandom, settled, VirtualClock } from '../../test/support/virtual-clock.js';
import { type ReconcileCall, type Reconciled, type ReconcileEvent, ReconcileLoop } from './reconcile-loop.js';
import type { SessionState } from './session-state.js';
import { ZooKeeperError } from './zookeeper-error.js';

interface Item extends Reconciled {
  blockedBy: string | undefined;
}

function connected(id: number): SessionState {
  return {
    status: 'connected',
    sessionId: `${id}`.padStart(16, '0'),
    timeoutMs: 10_000,
    server: '127.0.0.1:2181',
  };
}

function item(path: string): Item {
  return { path, dirty: true, blockedBy: undefined };
}

function reconciling(settle: (item: Item, call: ReconcileCall) => Promise<void> = async () => undefined) {
  const clock = new VirtualClock();
  const listeners = new Set<(state: SessionState) => void>();
  const zookeeper = {
    description: 'zookeeper 127.0.0.1:2181',
    state: connected(1) as SessionState,
    onState: (listener: (state: SessionState) => void) => {
      listeners.add(listener);
      return () => listeners.delete(listener);
    },
    become: (state: SessionState) => {
      zookeeper.state = state;
      for (const listener of [...listeners]) listener(state);
    },
  };
  const items: Item[] = [];
  const seen = { settled: [] as string[], events: [] as ReconcileEvent[] };
  const loop = new ReconcileLoop<Item>({
    ...{ zookeeper, clock, random: seededRandom(1), name: 'the loop' },
    items: () => items,
    settle: async (each, call) => {
      each.dirty = false;
      seen.settled.push(`${each.path} in ${Number(call.sessionId)}`);
      await settle(each, call);
    },
    onEvent: (event) => seen.events.push(event),
  });
  return { clock, zookeeper, items, seen, loop, listeners };
}

describe('a reconcile loop', () => {
  it('settles dirty items once, and all items again in a new session', async () => {
    const { zookeeper, items, seen, loop } = reconciling();
    items.push(item('/a'), item('/b'));
    for (const each of items) loop.touched(each);
    await settled();
    expect(seen.settled).toEqual(['/a in 1', '/b in 1']);
    expect(loop.state).toEqual({ status: 'synced' });
    loop.touched(items[1] as Item);
    expect(loop.state).toEqual({ status: 'degraded', problem: '/b is about to be written' });
    await settled();
    zookeeper.become({ status: 'expired', sessionId: '1' });
    zookeeper.become(connected(2));
    await settled();
    expect(seen.settled.slice(2)).toEqual(['/b in 1', '/a in 2', '/b in 2']);
    await loop.close();
  });

  it('repeats a failed step, after pauses that grow to a second, and at once in a new session', async () => {
    const { clock, zookeeper, items, seen, loop } = reconciling(async () => {
      throw new ZooKeeperError('no answer', { fault: 'timeout', outcome: 'unknown' });
    });
    items.push(item('/a'));
    loop.touched(items[0] as Item);
    await settled();
    const tries = () => seen.settled.length;
    expect(tries()).toBe(1);
    await clock.advance(49);
    expect(tries()).toBe(1);
    await clock.advance(51);
    expect(tries()).toBe(2);
    await clock.advance(10_000);
    const before = tries();
    await clock.advance(10_000);
    expect(tries() - before).toBeGreaterThanOrEqual(9);
    expect(tries() - before).toBeLessThanOrEqual(20);
    zookeeper.become(connected(2));
    await settled();
    expect(seen.settled.at(-1)).toBe('/a in 2');
    expect(seen.events).toEqual([{ type: 'degraded', problem: 'no answer' }]);
    await loop.close();
    expect(clock.sleepers).toBe(0);
  });

  it('does not delay the others if one fails', async () => {
    const { items, seen, loop } = reconciling(async ({ path }) => {
      if (path === '/bad') throw new ZooKeeperError('refused', { fault: 'no-auth', outcome: 'not-applied' });
    });
    items.push(item('/bad'));
    loop.touched(items[0] as Item);
    await settled();
    items.push(item('/good'));
    loop.touched(items[1] as Item);
    await settled();
    expect(seen.settled).toContain('/good in 1');
    expect(loop.state).toEqual({ status: 'degraded', problem: 'refused' });
    await loop.close();
  });

  it('is degraded while something is in the way, without trying again by itself', async () => {
    const { clock, items, seen, loop } = reconciling(async (each) => {
      Object.assign(each, { blockedBy: 'somebody else' });
    });
    items.push(item('/a'));
    loop.touched(items[0] as Item);
    await clock.advance(60_000);
    expect(seen.settled).toHaveLength(1);
    expect(loop.state).toEqual({ status: 'degraded', problem: 'somebody else' });
    await loop.close();
  });

  it('is not synced while a settled item has been touched again', async () => {
    let again = 3;
    const { items, seen, loop } = reconciling(async (each) => {
      again -= 1;
      if (again > 0) loop.touched(each);
    });
    items.push(item('/a'));
    const states: string[] = [];
    loop.onState(({ status }) => states.push(status));
    loop.touched(items[0] as Item);
    await settled();
    expect(seen.settled).toHaveLength(3);
    expect(states.at(-1)).toBe('synced');
    await loop.close();
  });

  it('does not report a slow first connection, but reports why there is none later on', async () => {
    const { zookeeper, seen, loop } = reconciling();
    await settled();
    zookeeper.become({ status: 'suspended', sessionId: '1', timeoutMs: 1, problem: 'refused' });
    expect(loop.state).toEqual({
      status: 'degraded',
      problem: 'no connection to zookeeper 127.0.0.1:2181: refused',
    });
    zookeeper.become(connected(1));
    await settled();
    expect(seen.events.map(({ type }) => type)).toEqual(['synced', 'degraded', 'synced']);
    zookeeper.become({ status: 'closed' });
    expect(loop.state).toEqual({ status: 'closed' });
    await loop.close();
  });

  it('leaves no timer and no listener behind, and gives up the current step', async () => {
    const { clock, items, loop, listeners } = reconciling(
      (_, { signal }) =>
        new Promise((_resolve, reject) =>
          signal.addEventListener('abort', () => reject(signal.reason), { once: true }),
        ),
    );
    items.push(item('/a'));
    loop.touched(items[0] as Item);
    await settled();
    await Promise.all([loop.close(), loop.close()]);
    expect([clock.sleepers, listeners.size, loop.state.status]).toEqual([0, 0, 'closed']);
    expect(loop.signal.reason).toMatchObject({ fault: 'closed', message: 'the loop has been closed' });
  });
});
