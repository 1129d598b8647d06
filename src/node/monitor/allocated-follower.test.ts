import { expect, it } from 'vitest';
import { pathOf, ScriptedZooKeeper } from '../../../test/support/scripted-zookeeper.js';
import { seededRandom, VirtualClock } from '../../../test/support/virtual-clock.js';
import { BoundSession } from '../../zookeeper/client/bound-session.js';
import { ClusterFollower } from './cluster-follower.js';
import type { FollowedParts } from './discovery/discovery-comparison.js';

/** The node ids 0 and 1, from ZooKeeper alone, and their follower. */
function scene(parts?: FollowedParts) {
  const clock = new VirtualClock();
  const zookeeper = new ScriptedZooKeeper(clock);
  zookeeper.put('/discovery/nodes/00', '', undefined);
  for (const nodeId of [0, 1]) {
    const data = JSON.stringify({ taskId: 'task', nodeId, version: 1, nonce: 'n', idWidth: 8 });
    zookeeper.put(pathOf(nodeId + 8), data, 'other');
  }
  const session = new BoundSession(zookeeper, 'a');
  const connected = { status: 'connected', sessionId: 'a', timeoutMs: 1_000, server: 'zk:2181' } as const;
  // A follower may have given up before the answers come.
  const slow = {
    description: 'zk:2181',
    whenConnected: async () => connected,
    children: (path: string) => session.children(path),
    read: (path: string) => session.read(path),
  };
  const follower = new ClusterFollower({ clock, random: seededRandom(1), zookeeper: slow, parts });
  return { clock, zookeeper, follower };
}

it('an id whose znode is gone is free at once: no task holds it, its version stays behind', async () => {
  const { clock, zookeeper, follower } = scene();
  follower.follow(() => undefined);
  await clock.advance(100);
  const nodes = follower.current().report?.nodes;
  expect(nodes?.map(({ id, state }) => [id, state])).toEqual([
    [0, 'held'],
    [1, 'held'],
  ]);
  await zookeeper.remove(pathOf(9), -1, { sessionId: 'a' });
  await clock.advance(1_000);
  expect(follower.current().report?.nodes.map(({ id }) => id)).toEqual([0]);
  const released = {
    kind: 'released',
    nodeId: 1,
    version: nodes?.[1]?.version,
    taskId: null,
    previousTaskId: 'task',
  };
  expect(follower.current().events).toMatchObject([released]);
  await clock.advance(5_000);
  expect(follower.current().events).toHaveLength(1);
  await follower.close();
});

it('an id that is gone is reported by the next scan if a scan was given up meanwhile', async () => {
  const { clock, zookeeper, follower } = scene();
  const leave = follower.follow(() => undefined);
  await clock.advance(100);
  await zookeeper.remove(pathOf(9), -1, { sessionId: 'a' });
  zookeeper.fault = async () => leave();
  await clock.advance(1_000);
  expect(follower.current().events).toEqual([]);
  zookeeper.fault = undefined;
  follower.follow(() => undefined);
  await clock.advance(3_000);
  expect(follower.current().events).toMatchObject([{ kind: 'released', nodeId: 1 }]);
  await follower.close();
});

it('a part of the tree whose reading was given up is not shown as one that cannot be read', async () => {
  const { clock, follower } = scene({
    data: async () => {
      await clock.sleep(500);
      return [];
    },
  });
  const leave = follower.follow(() => undefined);
  await clock.advance(400);
  leave();
  await clock.advance(0);
  follower.follow(() => undefined);
  const shown = () => follower.current().tree;
  await clock.advance(1_000);
  expect(shown()).toBeNull();
  await clock.advance(2_000);
  expect(shown()).toMatchObject({ data: [] });
  await follower.close();
});
