import { expect, it } from 'vitest';
import { AnySession } from '../../../test/support/scripted-zookeeper.js';
import { seededRandom, VirtualClock } from '../../../test/support/virtual-clock.js';
import type { ZnodeReader } from '../client/zookeeper.js';
import { readFleet, SeenReporter } from './fleet.js';

it('leaves out foreign znodes among the configurations that nodes run', async () => {
  const children: Record<string, readonly string[]> = {
    '/config/.nodelease/seen': ['shop', '.x', 'shop,', ',prod', 'a,b,c', 'shop@nodes=1', 'shop,.prod'],
  };
  const zookeeper = {
    children: async (path: string) => children[path],
    read: async () => undefined,
  } as unknown as ZnodeReader;
  const fleets = await readFleet(zookeeper, '/config', {});
  expect(fleets.map(({ context }) => context)).toEqual(['shop']);
});

it('leaves out a node whose revisions are no numbers', async () => {
  const reports: Record<string, unknown> = { 1: { toString: 1, valueOf: 1 }, 2: 'x', 3: null, 4: 1 };
  const zookeeper = {
    children: async (path: string) => (path.endsWith('/shop') ? Object.keys(reports) : []),
    read: async (path: string) => {
      const shop = reports[path.slice(-1)];
      const data = Buffer.from(JSON.stringify({ revisions: { shop }, at: '' }));
      return shop === undefined ? undefined : { data };
    },
  } as unknown as ZnodeReader;
  const [fleet] = await readFleet(zookeeper, '/config', {}, 'shop');
  expect(fleet?.nodes.map(({ nodeId }) => nodeId)).toEqual([4]);
});

/** Two that report in one session. */
function reporters() {
  const clock = new VirtualClock();
  const zookeeper = new AnySession(clock);
  const place = { zookeeper, clock, random: seededRandom(1), root: '/config' };
  const [seen, other] = [1, 2].map(() => new SeenReporter(place, 'shop', 3)) as [SeenReporter, SeenReporter];
  return { clock, zookeeper, seen, other };
}

it.each([
  ['removes its own', 'a', undefined],
  ['leaves that of the next holder of the node id', 'b', 'b'],
])('at its end, a report of what a node runs %s', async (_, owner, left) => {
  const { clock, zookeeper, seen } = reporters();
  seen.report({ shop: 1 });
  await clock.advance(0);
  expect(zookeeper.znodes.get(seen.path)?.stat.owner).toBe('a');
  zookeeper.put(seen.path, '{}', owner);
  seen.report({ shop: 2 });
  await seen.close();
  expect(zookeeper.znodes.get(seen.path)?.stat.owner).toBe(left);
});

it.each(['first', 'last'])(
  'is there again where another reader in its session, which reported %s, ends',
  async (at) => {
    const { clock, zookeeper, seen, other } = reporters();
    const [first, last] = at === 'first' ? [other, seen] : [seen, other];
    first.report({ shop: 1 });
    await clock.advance(0);
    last.report({ shop: 2 });
    await clock.advance(0);
    await other.close();
    zookeeper.fireWatches();
    await clock.advance(0);
    expect(`${zookeeper.znodes.get(seen.path)?.data}`).toContain(`{"shop":${at === 'first' ? 2 : 1}}`);
    await seen.close();
    expect(zookeeper.znodes.has(seen.path)).toBe(false);
  },
);
