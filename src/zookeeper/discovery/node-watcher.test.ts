import { expect, it } from 'vitest';
import { pathOf, ScriptedZooKeeper } from '../../../test/support/scripted-zookeeper.js';
import { settled, VirtualClock } from '../../../test/support/virtual-clock.js';
import { encodeAssignment } from './layout.js';
import { NodeWatcher } from './node-watcher.js';

// What does not need a server: test/integration/zookeeper/discovery/discovery-nodes.test.ts has the rest.

const assigned = (version: number) => String(encodeAssignment({ taskId: 'task', nodeId: 0, version }));

it('notifies once of a node that changes twice at a time', async () => {
  const clock = new VirtualClock();
  const zookeeper = new ScriptedZooKeeper(clock);
  for (const above of ['/discovery/nodes', '/discovery/nodes/00']) zookeeper.put(above, '', undefined);
  zookeeper.put(pathOf(8), assigned(1), 'other');
  const watcher = new NodeWatcher({ zookeeper, clock });
  const changes: number[][] = [];
  watcher.onChange((changed) => changes.push([...changed]));
  // The nodes, their groups, the data of each.
  for (let level = 0; level < 3; level += 1) zookeeper.fireWatches();
  await watcher.ready;
  for (const version of [2, 3]) {
    zookeeper.overwrite(pathOf(8), assigned(version));
    zookeeper.fireWatches();
  }
  await settled();
  expect([changes, watcher.knownVersions()]).toEqual([[[8], [8]], { 0: 3 }]);
  watcher.close();
});
