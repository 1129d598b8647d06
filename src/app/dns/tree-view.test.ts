import { expect, it } from 'vitest';
import { settled, VirtualClock } from '../../../test/support/virtual-clock.js';
import { WatchedTree } from '../../../test/support/watched-tree.js';
import type { ZooKeeper } from '../../zookeeper/client/zookeeper.js';
import { treeView } from './tree-view.js';

function viewed() {
  const clock = new VirtualClock();
  const tree = new WatchedTree();
  const view = treeView({
    ...{ zookeeper: tree as unknown as ZooKeeper, clock },
    ...{ basePath: '/services', maxStaleMs: 600_000 },
  });
  return { clock, tree, view };
}

it('is as old as the oldest part that is answered from: a service that may not be read does not count', async () => {
  const { clock, tree, view } = viewed();
  await clock.advance(1_000);
  expect(view.staleMs()).toBe(1_000);
  tree.answer('/services', ['orders', 'secret']);
  tree.answer('/discovery/nodes', []);
  await settled();
  expect(['orders', 'secret'].map((name) => view.service(name).kind)).toEqual(['pending', 'pending']);
  tree.answer('/services/orders', []);
  await clock.advance(60_000);
  expect([view.service('orders').kind, view.staleMs()]).toEqual(['known', 0]);
  tree.lose();
  await clock.advance(5_000);
  expect(view.staleMs()).toBe(5_000);
  view.close();
  expect(tree.watched).toEqual([]);
});

it('lets no question wait for a list that has been refused for 5 seconds, until it may be read', async () => {
  const { clock, tree, view } = viewed();
  for (const path of ['/services', '/services/secret', '/discovery/nodes']) tree.refused.add(path);
  const kinds = () => [view.service('secret').kind, view.node(0).kind];
  expect(kinds()).toEqual(['pending', 'pending']);
  await clock.advance(6_000);
  expect(kinds()).toEqual(['unknown', 'unknown']);
  tree.answer('/services', ['secret']);
  tree.answer('/discovery/nodes', []);
  await settled();
  expect(kinds()).toEqual(['pending', 'absent']);
  await clock.advance(6_000);
  expect(view.service('secret').kind).toBe('unknown');
  tree.answer('/services/secret', []);
  await settled();
  expect(view.service('secret').kind).toBe('known');
  view.close();
});
