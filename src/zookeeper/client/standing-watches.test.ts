import { expect, it } from 'vitest';
import { seededRandom, settled, VirtualClock } from '../../../test/support/virtual-clock.js';
import type { Session } from './connection/library-session.js';
import { CHILDREN, StandingWatches } from './standing-watches.js';
import { ZooKeeperError, type ZooKeeperFault } from './zookeeper.js';

// Which watch reads when; what they report is tested on real servers.

/** Watches whose reads end when they are let. */
function scene() {
  const clock = new VirtualClock();
  const under: (() => void)[] = [];
  const network = {
    ...{ isConnected: true, state: 'a', mostAtOnce: 0 },
    fault: undefined as ZooKeeperFault | undefined,
  };
  const children = async () => {
    await new Promise<void>((resolve) => under.push(resolve));
    const { fault } = network;
    if (fault) throw new ZooKeeperError(fault, fault, 'not-applied');
    return [network.state];
  };
  const watches = new StandingWatches({
    clock,
    random: seededRandom(1),
    isConnected: () => network.isConnected,
    send: (_, path, request) => request({ children } as unknown as Session, path),
  });
  const answer = async () => {
    for (; under.length > 0; await settled()) {
      network.mostAtOnce = Math.max(network.mostAtOnce, under.length);
      for (const end of under.splice(0)) end();
    }
  };
  return { clock, network, watches, under, answer };
}

it('read again after a reconnect, at most 64 at a time, and report changes', async () => {
  const { network, watches, answer } = scene();
  const reported: string[] = [];
  const all = Array.from({ length: 2_000 }, (_, i) =>
    watches.add(CHILDREN, `/${i}`, (names) => reported.push(String(names))),
  );
  await answer();
  await Promise.all(all.map(({ first }) => first));
  expect([watches.size, reported.length, network.mostAtOnce]).toEqual([2_000, 2_000, 64]);
  watches.onConnected();
  await answer();
  expect(reported).toHaveLength(2_000);
  network.isConnected = false;
  network.state = 'b';
  watches.onChanged('/7', false);
  await answer();
  expect(reported).toHaveLength(2_000);
  network.isConnected = true;
  watches.onConnected();
  await answer();
  expect(reported.slice(2_000)).toEqual(Array.from({ length: 2_000 }, () => 'b'));
});

it('read once more if something changes during a read, and report nothing once closed', async () => {
  const { network, watches, under, answer } = scene();
  const reported: string[] = [];
  const watch = watches.add(CHILDREN, '/a', (names) => reported.push(String(names)));
  watches.onChanged('/a', false);
  for (const end of under.splice(0)) end();
  await settled();
  network.state = 'b';
  expect(under).toHaveLength(1);
  watch.close();
  await answer();
  expect([reported, watches.size]).toEqual([['a'], 0]);
});

it('pause longer and longer between reads that fail, and leave no timer behind', async () => {
  const { clock, network, watches, answer } = scene();
  const reported: string[] = [];
  watches.add(CHILDREN, '/a', (names) => reported.push(String(names)));
  network.fault = 'timeout';
  await answer();
  expect([reported, clock.sleepers]).toEqual([[], 1]);
  network.fault = undefined;
  await clock.advance(200);
  await answer();
  expect([reported, clock.sleepers]).toEqual([['a'], 0]);
  network.fault = 'timeout';
  watches.onChanged('/a', false);
  await answer();
  watches.close();
  await settled();
  expect([clock.sleepers, watches.size]).toEqual([0, 0]);
});

it('are refused after many reconnects no more often than after one', async () => {
  const { clock, network, watches, answer } = scene();
  network.fault = 'no-auth';
  watches.add(CHILDREN, '/a', () => {});
  for (let reconnects = 0; reconnects < 50; reconnects += 1) {
    watches.onConnected();
    await answer();
    await clock.advance(10);
  }
  for (let seconds = 0; seconds < 10; seconds += 1) {
    await clock.advance(1_000);
    await answer();
  }
  expect(clock.sleepers).toBe(1);
  watches.close();
});

it('notify once that what was reported may not be read any more, and report the next state in any case', async () => {
  const { clock, network, watches, answer } = scene();
  const reported: string[] = [];
  watches.add(
    CHILDREN,
    '/a',
    (names) => reported.push(String(names)),
    (path) => reported.push(`refused ${path}`),
  );
  for (const fault of [
    'no-auth',
    undefined,
    'timeout',
    'no-auth',
    'timeout',
    'no-auth',
    undefined,
  ] as const) {
    network.fault = fault;
    watches.onChanged('/a', false);
    await answer();
    await clock.advance(10_000);
    await answer();
  }
  expect(reported).toEqual(['a', 'refused /a', 'a']);
});

it.each<[ZooKeeperFault, boolean]>([
  ['no-auth', true],
  ['timeout', false],
  ['connection-loss', false],
  ['session-expired', false],
])('are refused, or only slow, as long as reads fail: %s', async (fault, isRefused) => {
  const { clock, network, watches, answer } = scene();
  network.fault = fault;
  const watch = watches.add(CHILDREN, '/a', () => {});
  expect(watch.isRefused).toBe(false);
  await answer();
  expect(watch.isRefused).toBe(isRefused);
  network.fault = undefined;
  await clock.advance(200);
  watches.onConnected();
  await answer();
  expect(watch.isRefused).toBe(false);
});
