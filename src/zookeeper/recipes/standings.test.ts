import { expect, it } from 'vitest';
import { AnySession } from '../../../test/support/scripted-zookeeper.js';
import { VirtualClock } from '../../../test/support/virtual-clock.js';
import { standingsBelow } from './standings.js';

it('shows the holders of a semaphore that contended for it in one session, at once', async () => {
  const tree = new AnySession(new VirtualClock());
  for (const path of ['/s', '/s/locks', '/s/leases']) tree.put(path, '', undefined);
  const names = ['one', 'two', 'three'];
  const pathOf = (of: string, at: number) => `/s/${of}s/_c_x-${of}-000000000${at}`;
  for (const [at, name] of names.entries()) tree.put(pathOf('lock', at), name, 'b');
  const shown = async () => {
    const [{ holders, waiting } = { holders: [], waiting: [] }] = await standingsBelow(tree, ['/s']);
    return [holders, waiting].map((contenders) => contenders.map(({ data }) => data));
  };
  for (const [at, name] of names.entries()) {
    tree.put(pathOf('lease', at), name, 'b');
    // It holds, and lets the next one contend for a lease.
    if (name !== 'three') tree.znodes.delete(pathOf('lock', at));
  }
  expect(await shown()).toEqual([['one', 'two'], ['three']]);
  tree.znodes.delete(pathOf('lock', 2));
  expect(await shown()).toEqual([names, []]);
});
