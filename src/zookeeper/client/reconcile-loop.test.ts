import { describe, expect, it } from 'vitest';
import { seededRandom, settled, VirtualClock } from '../../../test/support/virtual-clock.js';
import { type ReconcileCall, type Reconciled, type ReconcileEvent, ReconcileLoop } from './reconcile-loop.js';
import type { SessionState } from './session-state.js';
import type { ReadingWatch, Znode } from './zookeeper.js';
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

function reconciling(
  step: (item: Item, call: ReconcileCall) => Promise<boolean | number> = async () => true,
) {
  const clock = new VirtualClock();
  const listeners = new Set<(state: SessionState) => void>();
  const watches = new Map<string, (znode: Znode | undefined, path: string) => void>();
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
    watchData: (path: string, listener: (znode: Znode | undefined, path: string) => void): ReadingWatch => {
      watches.set(path, listener);
      return { first: Promise.resolve(), isRefused: false, close: () => void watches.delete(path) };
    },
  };
  const seen = { settled: [] as string[], events: [] as ReconcileEvent[] };
  const loop = new ReconcileLoop({
    ...{ zookeeper, clock, random: seededRandom(1), name: 'the loop' },
    onEvent: (event) => seen.events.push(event),
  });
  const item = (path: string): Item => {
    const each: Item = {
      ...{ path, dirty: true, blockedBy: undefined },
      step: (call) => {
        seen.settled.push(`${path} in ${Number(call.sessionId)}`);
        return step(each, call);
      },
    };
    return each;
  };
  return { clock, zookeeper, seen, loop, listeners, watches, item };
}

describe('a reconcile loop', () => {
  it('settles what is dirty once, and everything again in a new session', async () => {
    const { zookeeper, item, seen, loop } = reconciling();
    const b = item('/b');
    for (const each of [item('/a'), b]) loop.reconcile(each);
    await settled();
    expect(seen.settled).toEqual(['/a in 1', '/b in 1']);
    expect(loop.state).toEqual({ status: 'synced' });
    loop.reconcile(b);
    expect(loop.state).toEqual({ status: 'degraded', problem: '/b is about to be written' });
    await settled();
    zookeeper.become({ status: 'expired', sessionId: '1' });
    zookeeper.become(connected(2));
    await settled();
    expect(seen.settled.slice(2)).toEqual(['/b in 1', '/a in 2', '/b in 2']);
    await loop.close();
  });

  it('tries again what fails, after pauses that grow to a second, and at once in a new session', async () => {
    const { clock, zookeeper, item, seen, loop } = reconciling(async () => {
      throw new ZooKeeperError('no answer', 'timeout', 'unknown');
    });
    loop.reconcile(item('/a'));
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

  it('does not let one that fails keep the others waiting', async () => {
    const { item, seen, loop } = reconciling(async ({ path }) => {
      if (path === '/bad') throw new ZooKeeperError('refused', 'no-auth', 'not-applied');
      return true;
    });
    loop.reconcile(item('/bad'));
    await settled();
    loop.reconcile(item('/good'));
    await settled();
    expect(seen.settled).toContain('/good in 1');
    expect(loop.state).toEqual({ status: 'degraded', problem: 'refused' });
    await loop.close();
  });

  it('is degraded while something is in the way, without trying again by itself', async () => {
    const { clock, item, seen, loop } = reconciling(async (each) => {
      Object.assign(each, { blockedBy: 'another task' });
      return true;
    });
    loop.reconcile(item('/a'));
    await clock.advance(60_000);
    expect(seen.settled).toHaveLength(1);
    expect(loop.state).toEqual({ status: 'degraded', problem: 'another task' });
    await loop.close();
  });

  it('is not synced while a settled item has been touched again', async () => {
    let again = 3;
    const { item, seen, loop } = reconciling(async (each) => {
      again -= 1;
      if (again > 0) loop.reconcile(each);
      return true;
    });
    const states: string[] = [];
    loop.onState(({ status }) => states.push(status));
    loop.reconcile(item('/a'));
    await settled();
    expect(seen.settled).toHaveLength(3);
    expect(states.at(-1)).toBe('synced');
    await loop.close();
  });

  it('goes another step at once where another write came first, eight times, and then tries again later', async () => {
    const { clock, item, seen, loop } = reconciling(async () => {
      if (seen.settled.length % 2 === 0) return false;
      throw new ZooKeeperError('changed', 'bad-version', 'not-applied');
    });
    loop.reconcile(item('/a'));
    await settled();
    expect(seen.settled).toHaveLength(8);
    const problem = '/a is being changed by others all the time';
    expect(loop.state).toEqual({ status: 'degraded', problem });
    await clock.advance(100);
    expect(seen.settled).toHaveLength(16);
    await loop.close();
  });

  it('settles an item after the pause that it asks for, or before that when it is touched', async () => {
    const { clock, item, seen, loop } = reconciling(async () => seen.settled.length === 3 || 200);
    const a = item('/a');
    loop.reconcile(a);
    await clock.advance(199);
    expect(seen.settled).toHaveLength(1);
    expect(loop.state.status).toBe('degraded');
    loop.reconcile(a);
    await settled();
    expect(seen.settled).toHaveLength(2);
    await clock.advance(200);
    expect([seen.settled.length, loop.state.status, clock.sleepers]).toEqual([3, 'synced', 0]);
    await loop.close();
  });

  it('is not synced where the connection is lost as the last step ends', async () => {
    const { clock, zookeeper, item, seen, loop } = reconciling(async () => {
      zookeeper.become({ status: 'suspended', sessionId: '1', timeoutMs: 10_000 });
      return true;
    });
    loop.reconcile(item('/a'));
    await settled();
    expect(loop.state.status).toBe('degraded');
    expect(seen.events.map(({ type }) => type)).toEqual(['degraded']);
    expect(clock.sleepers).toBe(0);
    await loop.close();
  });

  it('settles every item in a new session that begins while items wait for their turn in the old one', async () => {
    let isFirst = true;
    const { zookeeper, item, seen, loop } = reconciling(async () => {
      if (isFirst) zookeeper.become(connected(2));
      isFirst = false;
      return true;
    });
    const paths = Array.from({ length: 80 }, (_, at) => `/${at}`);
    for (const path of paths) loop.reconcile(item(path));
    await settled();
    const inTwo = paths.filter((path) => seen.settled.includes(`${path} in 2`));
    expect(inTwo).toHaveLength(80);
    expect(loop.state).toEqual({ status: 'synced' });
    await loop.close();
  });

  it('watches the znode of an item, and settles it where it is not as expected, until it is forgotten', async () => {
    const { item, seen, loop, watches } = reconciling();
    const a: Item = { ...item('/a'), expects: (znode) => znode !== undefined };
    loop.reconcile(a);
    await settled();
    const znode = { data: Buffer.from('') } as Znode;
    watches.get('/a')?.(znode, '/a');
    await settled();
    expect(seen.settled).toHaveLength(1);
    watches.get('/a')?.(undefined, '/a');
    await settled();
    expect(seen.settled).toHaveLength(2);
    loop.forget(a);
    expect(watches.size).toBe(0);
    await loop.close();
  });

  it('closes the watches at its end', async () => {
    const { item, loop, watches } = reconciling();
    loop.reconcile({ ...item('/a'), expects: () => true });
    await settled();
    expect(watches.size).toBe(1);
    await loop.close();
    expect(watches.size).toBe(0);
  });

  it('says nothing of a first connection that takes its time, and why there is none later on', async () => {
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

  it('reports each problem of one outage once, also where several take turns', async () => {
    const { zookeeper, seen, loop } = reconciling();
    await settled();
    for (const problem of ['a', 'b', 'a', 'b']) zookeeper.become({ status: 'connecting', problem });
    expect(loop.state).toMatchObject({ problem: 'no connection to zookeeper 127.0.0.1:2181: b' });
    zookeeper.become(connected(2));
    await settled();
    zookeeper.become({ status: 'connecting', problem: 'a' });
    const texts = seen.events.map((event) => ('problem' in event ? event.problem.slice(-1) : event.type));
    expect(texts).toEqual(['synced', 'a', 'b', 'synced', 'a']);
    await loop.close();
  });

  it('leaves no timer and no listener behind, and gives up what is under way', async () => {
    let given: AbortSignal | undefined;
    const { clock, item, loop, listeners } = reconciling((_, { signal }) => {
      given = signal;
      return new Promise((_resolve, reject) =>
        signal.addEventListener('abort', () => reject(signal.reason), { once: true }),
      );
    });
    loop.reconcile(item('/a'));
    await settled();
    await Promise.all([loop.close(), loop.close()]);
    expect([clock.sleepers, listeners.size, loop.state.status]).toEqual([0, 0, 'closed']);
    expect(given?.reason).toMatchObject({ fault: 'closed', message: 'the loop has been closed' });
  });
});
