import { once } from 'node:events';
import library from 'node-zookeeper-client';
import { afterEach, beforeEach, describe, expect, inject, it } from 'vitest';
import { systemClock, systemRandom } from '../../../../src/core/base/system.js';
import type { ZooKeeper } from '../../../../src/zookeeper/client/zookeeper.js';
import { openZooKeeper, type ZooKeeperOptions } from '../../../../src/zookeeper/client/zookeeper-client.js';
import { watchIdWidth } from '../../../../src/zookeeper/discovery/id-width.js';
import { encodeAssignment } from '../../../../src/zookeeper/discovery/layout.js';
import { NodeWatcher } from '../../../../src/zookeeper/discovery/node-watcher.js';
import { stopProxies, throughProxy } from '../../../support/network/proxies.js';
import { VirtualClock } from '../../../support/virtual-clock.js';
import { expireSession, uniqueChroot } from '../../../support/zookeeper.js';

const NODES = '/discovery/nodes';

let connect: string;
/** Another client, which changes the tree. */
let other: ZooKeeper;
const opened: (() => unknown)[] = [];

beforeEach(() => {
  connect = `${inject('zookeeper').connect}${uniqueChroot('nodes')}`;
  other = client();
});
afterEach(async () => {
  for (const close of opened.splice(0).reverse()) await close();
  await stopProxies();
});

function client(through = connect, options: Pick<ZooKeeperOptions, 'sessionTimeoutMs'> = {}): ZooKeeper {
  const zookeeper = openZooKeeper({ connect: through, ...options, clock: systemClock, random: systemRandom });
  opened.push(() => zookeeper.close());
  return zookeeper;
}

function watch(
  zookeeper = client(),
  clock: ConstructorParameters<typeof NodeWatcher>[0]['clock'] = systemClock,
) {
  const reports: string[] = [];
  const watcher = new NodeWatcher({
    zookeeper,
    clock,
    onUnreadable: (path, problem) => reports.push(`${path} ${problem}`),
  });
  opened.push(() => watcher.close());
  return { watcher, reports };
}

const path = (group: string, index: string) => `${NODES}/${group}/${index}`;
const json = (nodeId: number, version: number, more: object = {}) =>
  encodeAssignment({ taskId: `task-${nodeId}`, nodeId, version, ...more });

async function add(group: string, index: string, data: string): Promise<void> {
  await other.createWithParents(path(group, index), data, 'ephemeral');
}

describe('a watcher of the nodes', () => {
  it('sees the nodes that are in the tree already, with all that they say of themselves', async () => {
    await add('00', '08', json(0, 3, { address: '10.0.0.7' }));
    await add('01', '2C', json(0x12c - 8, 1));
    const { watcher, reports } = watch();
    await watcher.ready;
    expect([...watcher.nodes]).toEqual([
      [8, { taskId: 'task-0', nodeId: 0, version: 3, address: '10.0.0.7' }],
      [0x12c, { taskId: 'task-292', nodeId: 292, version: 1 }],
    ]);
    expect(watcher.knownVersions()).toEqual({ 0: 3, 292: 1 });
    expect(watcher.stale).toBeUndefined();
    expect(reports).toEqual([]);
  });

  it('is ready where nothing was ever announced, and sees the first one who does', async () => {
    const { watcher } = watch();
    const reported: number[] = [];
    watcher.onChange((ids) => reported.push(ids.size));
    await watcher.ready;
    expect([watcher.nodes.size, reported]).toEqual([0, [0]]);
    await add('00', '08', json(0, 1));
    await expect.poll(() => watcher.knownVersions()).toEqual({ 0: 1 });
  });

  it('reports which nodes came, changed and went, and nothing before it has seen the whole tree', async () => {
    await add('00', '08', json(0, 1));
    await add('00', '09', json(1, 1));
    const { watcher } = watch();
    const reported: string[] = [];
    watcher.onChange((ids) =>
      reported.push(
        [...ids]
          .sort()
          .map((id) => `${id}:${watcher.nodes.get(id)?.version ?? '-'}`)
          .join(' '),
      ),
    );
    await watcher.ready;
    expect(reported).toEqual(['8:1 9:1']);
    await add('00', '0A', json(2, 7));
    await expect.poll(() => reported.at(-1)).toBe('10:7');
    await other.setData(path('00', '08'), json(0, 2));
    await expect.poll(() => reported.at(-1)).toBe('8:2');
    await other.remove(path('00', '09'));
    await expect.poll(() => reported.at(-1)).toBe('9:-');
    expect(reported).toHaveLength(4);
  });

  it('reports nothing of writes that change nothing, nor to a listener that has unsubscribed, nor after its end', async () => {
    await add('00', '08', json(0, 1));
    await add('00', '09', json(1, 1));
    const { watcher } = watch();
    await watcher.ready;
    const reported: number[][] = [];
    const unsubscribed: unknown[] = [];
    watcher.onChange((ids) => reported.push([...ids]));
    watcher.onChange((ids) => unsubscribed.push(ids))();
    for (let i = 0; i < 5; i += 1) await other.setData(path('00', '08'), json(0, 1));
    await other.setData(path('00', '09'), json(1, 2));
    await expect.poll(() => reported.flat()).toContain(9);
    expect(reported.flat()).not.toContain(8);
    watcher.close();
    const heard = reported.length;
    const { watcher: witness } = watch();
    await other.remove(path('00', '09'));
    await expect.poll(() => witness.knownVersions()).toEqual({ 0: 1 });
    expect(reported).toHaveLength(heard);
    expect(unsubscribed).toEqual([]);
    expect(watcher.knownVersions()).toEqual({ 0: 1, 1: 2 });
    expect(watcher.stale).toBeDefined();
  });

  it('follows groups that vanish and come again, as containers do', async () => {
    await add('00', '08', json(0, 1));
    const { watcher } = watch();
    await watcher.ready;
    for (let round = 2; round < 6; round += 1) {
      await other.remove(path('00', '08'));
      await other.remove(`${NODES}/00`);
      if (round % 2 === 0) await expect.poll(() => watcher.nodes.size).toBe(0);
      await add('00', '08', json(0, round));
      await expect.poll(() => watcher.knownVersions()).toEqual({ 0: round });
    }
    await other.remove(path('00', '08'));
    await other.remove(`${NODES}/00`);
    await other.remove(NODES);
    await expect.poll(() => watcher.nodes.size).toBe(0);
    await add('FF', 'FF', json(0xffff - 8, 9));
    await expect.poll(() => watcher.knownVersions()).toEqual({ 65527: 9 });
  });

  it('sees the successor of a node whose znode was replaced in one transaction', async () => {
    await add('00', '08', json(0, 1));
    const { watcher } = watch();
    await watcher.ready;
    const at = path('00', '08');
    await client().multi([
      { type: 'remove', path: at },
      { type: 'create', path: at, data: json(0, 2), mode: 'ephemeral' },
    ]);
    await expect.poll(() => watcher.knownVersions()).toEqual({ 0: 2 });
  });

  it('keeps apart entries without task, node id and version, reports each once, and counts its id as taken', async () => {
    const shapes = [
      '',
      'no json',
      '[1]',
      'null',
      '{"taskId":"t","nodeId":0}',
      '{"nodeId":0,"version":1}',
      '{"name":"orders","id":"8"}',
      json(99, 1),
    ];
    for (const [i, data] of shapes.entries()) await add('00', `1${i}`, data);
    await add('00', '08', json(0, 1));
    const { watcher, reports } = watch();
    await watcher.ready;
    expect(watcher.knownVersions()).toEqual({ 0: 1 });
    expect([...watcher.unreadable.keys()].sort()).toEqual(shapes.map((_, i) => 0x10 + i));
    expect(shapes.every((_, i) => watcher.isTaken(0x10 + i))).toBe(true);
    expect([watcher.isTaken(8), watcher.isTaken(9)]).toEqual([true, false]);
    expect(reports.sort()).toEqual([
      ...shapes.slice(0, -1).map((_, i) => `${path('00', `1${i}`)} does not tell task, node id and version`),
      `${path('00', '17')} stands for node id 15, but names 99`,
    ]);

    await other.setData(path('00', '11'), 'something else');
    await other.setData(path('00', '10'), json(8, 5));
    await other.remove(path('00', '12'));
    await expect.poll(() => watcher.knownVersions()).toEqual({ 0: 1, 8: 5 });
    await expect.poll(() => watcher.isTaken(0x12)).toBe(false);
    expect(watcher.unreadable.has(0x10)).toBe(false);
    await other.setData(path('00', '10'), 'unreadable again');
    await expect.poll(() => watcher.knownVersions()).toEqual({ 0: 1 });
    expect(reports).toHaveLength(shapes.length);
  });

  it('takes the znode’s transaction for the version of an allocated id whose holder has not written it yet', async () => {
    await add('00', '0A', '{"taskId":"t","nodeId":2,"nonce":"0123"}');
    const made = (await other.read(path('00', '0A')))?.stat.createdZxid;
    const { watcher, reports } = watch();
    await watcher.ready;
    expect(watcher.knownVersions()).toEqual({ 2: Number(made) });
    expect(reports).toEqual([]);
  });

  it('ignores names that are no group or node, reporting each once, and the ids that are reserved', async () => {
    await add('00', '08', json(0, 1));
    await add('00', '07', 'reserved');
    for (const name of ['8', '008', 'GG', '0x08', 'lock-0000000001']) await add('00', name, json(1, 1));
    await other.ensurePath(`${NODES}/locks/08`);
    const { watcher, reports } = watch();
    await watcher.ready;
    await add('00', '0B', json(3, 1));
    await expect.poll(() => watcher.knownVersions()).toEqual({ 0: 1, 3: 1 });
    expect([watcher.unreadable.size, watcher.isTaken(7)]).toEqual([0, false]);
    expect(reports.sort()).toEqual([
      ...['008', '0x08', '8', 'GG', 'lock-0000000001'].map(
        (name) => `${path('00', name)} is not the name of a node, two hex digits`,
      ),
      `${NODES}/locks is not the name of a group, two hex digits`,
    ]);
  });

  it('takes the higher version where hex digits are spelled in two ways', async () => {
    await add('00', '0A', json(2, 1));
    await add('00', '0a', json(2, 4));
    const { watcher } = watch();
    await watcher.ready;
    expect(watcher.knownVersions()).toEqual({ 2: 4 });
    await other.remove(path('00', '0a'));
    await expect.poll(() => watcher.knownVersions()).toEqual({ 2: 1 });
    await other.remove(path('00', '0A'));
    await expect.poll(() => watcher.isTaken(10)).toBe(false);
  });

  it('is not held up for ever by znodes that it may not read', async () => {
    await add('00', '08', json(0, 1));
    await add('00', '09', json(1, 1));
    await add('01', '00', json(0xf8, 1));
    // No client may read these any more.
    await deny(path('00', '09'), `${NODES}/01`);
    const clock = new VirtualClock();
    const zookeeper = client();
    const { watcher, reports } = watch(zookeeper, clock);
    let ready = false;
    void watcher.ready.then(() => {
      ready = true;
    });
    await expect.poll(() => watcher.knownVersions()).toEqual({ 0: 1 });
    await clock.advance(4_900);
    expect(ready).toBe(false);
    // The servers refuse it in real time.
    await expect.poll(() => clock.advance(200).then(() => ready)).toBe(true);
    expect([...watcher.unreadable.keys()]).toEqual([9]);
    expect(reports).toEqual([
      `${NODES}/01 has not let itself be read for 5 s`,
      `${path('00', '09')} has not let itself be read for 5 s`,
    ]);
    await add('00', '0A', json(2, 1));
    await expect.poll(() => watcher.knownVersions()).toEqual({ 0: 1, 2: 1 });
  });

  it('says since when it may be out of date, keeps what it saw, and catches up with all that it missed', async () => {
    const { proxy, through } = await throughProxy(connect);
    for (const [index, id] of [
      ['08', 0],
      ['09', 1],
      ['0A', 2],
    ] as const)
      await add('00', index, json(id, 1));
    const zookeeper = client(through);
    const { watcher } = watch(zookeeper);
    await watcher.ready;

    const before = systemClock.monotonic();
    proxy.cut();
    await expect.poll(() => watcher.stale?.since).toBeGreaterThanOrEqual(before);
    const since = watcher.stale?.since;
    await other.remove(path('00', '08'));
    await other.setData(path('00', '09'), json(1, 2));
    await add('02', '00', json(0x1f8, 1));
    expect(watcher.knownVersions()).toEqual({ 0: 1, 1: 1, 2: 1 });
    expect(watcher.stale?.since).toBe(since);
    proxy.heal();
    await expect.poll(() => watcher.knownVersions()).toEqual({ 1: 2, 2: 1, 504: 1 });
    await expect.poll(() => watcher.stale).toBeUndefined();
  });

  it('catches up also when its session has expired meanwhile', async () => {
    const { proxy, through } = await throughProxy(connect);
    await add('00', '08', json(0, 1));
    await add('00', '09', json(1, 1));
    const zookeeper = client(through, { sessionTimeoutMs: 40_000 });
    const session = await zookeeper.whenConnected();
    const { watcher } = watch(zookeeper);
    await watcher.ready;
    proxy.cut();
    await expireSession({ connect: inject('zookeeper').connect, sessionId: session.sessionId });
    await other.remove(path('00', '08'));
    await add('00', '0A', json(2, 5));
    proxy.heal();
    await expect.poll(() => watcher.knownVersions()).toEqual({ 1: 1, 2: 5 });
    expect(await zookeeper.whenConnected()).not.toMatchObject({ sessionId: session.sessionId });
    await other.setData(path('00', '0A'), json(2, 6));
    await expect.poll(() => watcher.knownVersions()).toEqual({ 1: 1, 2: 6 });
  });
});

describe('the width of node ids', () => {
  it('is 8 bits for one group, grows with the highest group, and reports each step', async () => {
    const width = watchIdWidth(client());
    opened.push(() => width.close());
    const reported: number[] = [];
    width.onChange((bits) => reported.push(bits));
    await width.first;
    expect(width.value).toBe(8);
    for (const [group, bits] of [
      ['00', 8],
      ['01', 9],
      ['03', 10],
      ['02', 10],
      ['7f', 15],
      ['80', 16],
      ['FF', 16],
    ] as const) {
      await other.ensurePath(`${NODES}/${group}`);
      await expect.poll(() => width.value).toBe(bits);
    }
    expect(reported).toEqual([9, 10, 15, 16]);
  });

  it('never shrinks: ids of the higher group may have been made in this very millisecond', async () => {
    await other.ensurePath(`${NODES}/04`);
    const width = watchIdWidth(client());
    opened.push(() => width.close());
    await width.first;
    expect(width.value).toBe(11);
    await other.remove(`${NODES}/04`);
    await other.ensurePath(`${NODES}/00`);
    const late = watchIdWidth(client());
    opened.push(() => late.close());
    await late.first;
    expect([late.value, width.value]).toEqual([8, 11]);
    await other.ensurePath(`${NODES}/01`);
    await expect.poll(() => late.value).toBe(9);
    expect(width.value).toBe(11);
  });

  it('is never below what the own node id needs, and does not count foreign names', async () => {
    await other.ensurePath(`${NODES}/FFF`);
    await other.ensurePath(`${NODES}/locks`);
    const own = watchIdWidth(client(), 0x300);
    opened.push(() => own.close());
    expect(own.value).toBe(10);
    await own.first;
    expect(own.value).toBe(10);
    expect(() => watchIdWidth(other, 70_000)).toThrow('node id: expected a whole number from 0 to 65527');
  });

  it('stays as it is after its end', async () => {
    const width = watchIdWidth(client());
    const reported: number[] = [];
    width.onChange((bits) => reported.push(bits));
    await width.first;
    width.close();
    const witness = watchIdWidth(client());
    opened.push(() => witness.close());
    await other.ensurePath(`${NODES}/01`);
    await expect.poll(() => witness.value).toBe(9);
    expect([width.value, reported]).toEqual([8, []]);
  });
});

/** Takes away everybody's right to read, by another library's session since ours always leaves it. */
async function deny(...paths: readonly string[]): Promise<void> {
  const session = library.createClient(connect);
  session.connect();
  await once(session, 'connected');
  try {
    for (const at of paths) {
      const writeOnly = [
        new library.ACL(
          library.Permission.WRITE | library.Permission.DELETE | library.Permission.CREATE,
          new library.Id('world', 'anyone'),
        ),
      ];
      await new Promise<void>((resolve, reject) =>
        session.setACL(at, writeOnly, -1, (error) => (error ? reject(error) : resolve())),
      );
    }
  } finally {
    session.close();
  }
}
