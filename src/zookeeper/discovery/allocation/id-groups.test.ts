import { describe, expect, it } from 'vitest';
import { pathOf, ScriptedZooKeeper, tendGroups } from '../../../../test/support/scripted-zookeeper.js';
import { VirtualClock } from '../../../../test/support/virtual-clock.js';
import { BoundSession } from '../../client/bound-session.js';
import { groupPath } from '../layout.js';
import { findFreeIds } from './id-groups.js';

/** A tree with these groups, and these cluster node ids taken. */
function tree(groups: readonly number[], taken: readonly number[]) {
  const zookeeper = new ScriptedZooKeeper(new VirtualClock());
  for (const group of groups) zookeeper.put(groupPath(group), '', undefined);
  for (const id of taken) zookeeper.put(pathOf(id), '{}', 'other');
  return { zookeeper, session: new BoundSession(zookeeper, 'a') };
}

/** `count` numbers from `from` on. */
const range = (from: number, count: number) => Array.from({ length: count }, (_, i) => from + i);

describe('the free ids', () => {
  it('begin at 8, since the first eight are reserved, whether they are in use or not', async () => {
    expect((await findFreeIds(tree([], []).session, 256)).free[0]).toBe(8);
    expect((await findFreeIds(tree([0], [0, 1, 7]).session, 256)).free.slice(0, 2)).toEqual([8, 9]);
  });

  it('are listed in ascending order, from the first gap on', async () => {
    expect((await findFreeIds(tree([0], [8, 9, 11]).session, 256)).free.slice(0, 2)).toEqual([10, 12]);
  });

  it('continue in the next group if one is full', async () => {
    const { session } = tree([0, 1], [...range(8, 248), 256]);
    expect((await findFreeIds(session, 256)).free[0]).toBe(257);
  });

  it('are empty if the last possible group is full', async () => {
    const { session } = tree([0], range(8, 248));
    expect((await findFreeIds(session, 1)).free).toEqual([]);
    expect((await findFreeIds(session, 2)).free[0]).toBe(256);
  });

  it('are not taken by names that are no ids, and are by such in lower case', async () => {
    const { session, zookeeper } = tree([0], [8]);
    for (const name of ['9', 'lock', '0b']) zookeeper.put(`${groupPath(0)}/${name}`, '', undefined);
    expect((await findFreeIds(session, 256)).free.slice(0, 3)).toEqual([9, 10, 12]);
  });
});

describe('the groups', () => {
  const groupsIn = ({ znodes }: ScriptedZooKeeper) =>
    [...znodes.keys()].filter((path) => /nodes\/..$/.test(path)).sort();

  it.each([
    ['the next one is made ahead of need when 200 ids are taken', [0], range(8, 200), [0, 1]],
    ['none is made before that', [0], range(8, 199), [0]],
    ['none is made beyond the last that there may be', [0, 1], range(256, 256), [0, 1]],
    [
      'empty ones at the end are removed when fewer than 152 ids are taken below',
      [0, 1, 2],
      range(8, 151),
      [0],
    ],
    ['none is removed while 152 are taken', [0, 1], range(8, 152), [0, 1]],
    ['none is removed while it has a member', [0, 1], [8, 256], [0, 1]],
  ])('%s', async (_, groups, taken, left) => {
    const { session, zookeeper } = tree(groups, taken);
    await tendGroups(session, 2);
    expect(groupsIn(zookeeper)).toEqual(left.map(groupPath));
  });
});
