import { describe, expect, it } from 'vitest';
import { fails, pathOf, ScriptedZooKeeper } from '../../../test/support/scripted-zookeeper.js';
import { VirtualClock } from '../../../test/support/virtual-clock.js';
import { BoundSession } from '../../zookeeper/client/bound-session.js';
import { inspectAllocated } from './allocated-status.js';

const STAMPS = '/discovery/stamps';

function tree(
  groups: readonly string[],
  held: readonly (readonly [clusterNodeId: number, idWidth: number])[] = [],
) {
  const zookeeper = new ScriptedZooKeeper(new VirtualClock());
  for (const group of groups) zookeeper.put(`/discovery/nodes/${group}`, '', undefined);
  for (const [clusterNodeId, idWidth] of held) {
    const nodeId = clusterNodeId - 8;
    zookeeper.put(
      pathOf(clusterNodeId),
      JSON.stringify({ taskId: 'task', nodeId, version: 1, nonce: 'n', idWidth }),
      'other',
    );
  }
  return zookeeper;
}

const look = (zookeeper: ScriptedZooKeeper) => inspectAllocated(new BoundSession(zookeeper, 'a'));

describe('the width of ids that come only from ZooKeeper is the greatest', () => {
  it('that the groups need', async () => {
    expect(await look(tree(['01', '02', '00']))).toMatchObject({ groups: [0, 1, 2], idWidth: 10 });
  });

  it('that ids ever had here, although the groups are gone', async () => {
    const zookeeper = tree(['00'], [[8, 8]]);
    zookeeper.put(STAMPS, '{"idWidth":9}', undefined);
    expect((await look(zookeeper)).idWidth).toBe(9);
    zookeeper.overwrite(STAMPS, 'garbage');
    expect((await look(zookeeper)).idWidth).toBe(8);
  });

  it('that a holder uses', async () => {
    const { idWidth, nodes } = await look(
      tree(
        ['00'],
        [
          [8, 8],
          [9, 11],
        ],
      ),
    );
    expect([idWidth, nodes.map((node) => node.idWidth)]).toEqual([11, [8, 11]]);
  });

  it('as far as it may be read: one that may not be read does not hide the rest', async () => {
    const zookeeper = tree(['00', '01']);
    zookeeper.fault = async (operation, path) => {
      if (operation === 'read' && path === STAMPS) throw fails('no-auth', 'not-applied');
    };
    expect((await look(zookeeper)).idWidth).toBe(9);
  });
});
