import { expect, it } from 'vitest';
import { pathOf, ScriptedZooKeeper } from '../../test/support/scripted-zookeeper.js';
import { VirtualClock } from '../../test/support/virtual-clock.js';
import { BoundSession } from '../discovery/allocation/id-znodes.js';
import { AllocatedReader } from './allocated-status.js';

/** The node ids 0 and 1. */
function scene() {
  const clock = new VirtualClock();
  const zookeeper = new ScriptedZooKeeper(clock);
  zookeeper.put('/discovery/nodes/00', '', undefined);
  for (const nodeId of [0, 1]) {
    const data = JSON.stringify({ taskId: 'task', nodeId, version: 1, nonce: 'n', idWidth: 8 });
    zookeeper.put(pathOf(nodeId + 8), data, 'other');
  }
  const session = new BoundSession(zookeeper, 'a');
  const connected = { status: 'connected', sessionId: 'a', timeoutMs: 1_000, server: 'zk:2181' } as const;
  // Whoever asks may have given up before the answers come.
  const slow = {
    whenConnected: async () => connected,
    children: (path: string) => session.children(path),
    read: (path: string) => session.read(path),
  };
  return { zookeeper, reader: new AllocatedReader(slow, 'zk:2181', clock) };
}
const signal = new AbortController().signal;

it('an id whose znode is gone is free at once: nobody holds it, its version stays behind', async () => {
  const { zookeeper, reader } = scene();
  const { nodes } = await reader.scan(signal);
  expect(nodes.map(({ id, state }) => [id, state])).toEqual([
    [0, 'held'],
    [1, 'held'],
  ]);
  await zookeeper.remove(pathOf(9), -1, { sessionId: 'a' });
  const { gone } = await reader.scan(signal);
  expect(gone).toEqual([expect.objectContaining({ id: 1, state: 'released', taskId: undefined, version: nodes[1]?.version })]);
  expect((await reader.scan(signal)).gone).toEqual([]);
});

it('an id that is gone is told by the next scan when one was given up meanwhile', async () => {
  const { zookeeper, reader } = scene();
  await reader.scan(signal);
  await zookeeper.remove(pathOf(9), -1, { sessionId: 'a' });
  const abort = new AbortController();
  zookeeper.fault = async () => abort.abort(new Error('enough'));
  await expect(reader.scan(abort.signal)).rejects.toThrow('enough');
  zookeeper.fault = async () => undefined;
  expect((await reader.scan(signal)).gone).toHaveLength(1);
});
