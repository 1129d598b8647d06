import { expect, it } from 'vitest';
import type { ZnodeReader } from '../client/zookeeper.js';
import { readFleet } from './fleet.js';

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
