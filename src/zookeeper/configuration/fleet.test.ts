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

it.each([
  ['removes its own', undefined, undefined],
  ['leaves that of the next holder of the node id', 'b', 'b'],
  ['leaves that of another reader in its session', 'a', 'a'],
])('at its end, a report of what a node runs %s', async (_, owner, left) => {
  const clock = new VirtualClock();
  const zookeeper = new AnySession(clock);
  const seen = new SeenReporter({ zookeeper, clock, random: seededRandom(1), root: '/config' }, 'shop', 3);
  seen.report({ shop: 1 });
  await clock.advance(0);
  expect(zookeeper.znodes.get(seen.path)?.stat.owner).toBe('a');
  if (owner) zookeeper.put(seen.path, '{}', owner);
  await seen.close();
  expect(zookeeper.znodes.get(seen.path)?.stat.owner).toBe(left);
});
