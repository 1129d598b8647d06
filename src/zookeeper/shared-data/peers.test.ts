import { expect, it } from 'vitest';
import { AnySession } from '../../../test/support/scripted-zookeeper.js';
import { inVirtualTime, seededRandom, VirtualClock } from '../../../test/support/virtual-clock.js';
import type { CallOptions } from '../client/zookeeper.js';
import { HASHED_PATHS, sha256 } from './layout.js';
import { readSharedData } from './report.js';
import { TypedText } from './scalar-codec.js';
import { sharedData } from './shared-data.js';

// What another implementation of Monastery writes, after the specification alone: no record of name and kind.

const ROOT = '/monastery/root';
const ADDRESS = { name: 'limit', scope: 'eu' };
const PATH = `${ROOT}/data/${HASHED_PATHS.datum(ADDRESS, 'scalar')}`;
const OPEN = { scope: 'eu' };
const VIRGINIA = '{"key":{"type":"String","value":"Virginia"},"value":{"type":"Integer","value":"10"}}';

class Tree extends AnySession {
  override async read(path: string, call: CallOptions = {}) {
    const znode = await super.read(path, call);
    const childCount = (await this.children(path))?.length ?? 0;
    return znode && { ...znode, stat: { ...znode.stat, childCount } };
  }
}

/** @param znodes the datum's own znode as '', and its children by their names */
function peers(znodes: Readonly<Record<string, string>>, owner?: string) {
  const clock = new VirtualClock();
  const tree = new Tree(clock);
  for (const path of [ROOT, `${ROOT}/data`]) tree.put(path, '', undefined);
  for (const [name, data] of Object.entries(znodes)) tree.put(name ? `${PATH}/${name}` : PATH, data, owner);
  const data = sharedData(tree, { clock, random: seededRandom(1) });
  const report = async () =>
    (await readSharedData(tree, { connect: 'zk', root: ROOT, address: ADDRESS })).data[0];
  const textAt = (name = '') => tree.znodes.get(name ? `${PATH}/${name}` : PATH)?.data.toString();
  const read = async <T extends { readonly ready: Promise<void> }>(opening: Promise<T>): Promise<T> => {
    const opened = await inVirtualTime(clock, opening);
    tree.fireWatches();
    tree.fireWatches();
    return opened;
  };
  const wait = <T>(work: Promise<T>) => inVirtualTime(clock, work);
  return { tree, data, report, textAt, read, wait };
}

it.each([
  ['String', 'a', 'a'],
  ['Integer', '3', 3],
  ['Long', '2147483648', 2 ** 31],
  ['Double', '1.0E21', 1e21],
  ['Boolean', 'true', true],
  ['BigInteger', '18446744073709551616', 2n ** 64n],
  ['Instant', '2020-01-01T00:00:00Z', new TypedText('Instant', '2020-01-01T00:00:00Z')],
  ['Integer', 'three', new TypedText('Integer', 'three')],
])('reads the scalar %s %s that has a type and a value alone', async (type, value, expected) => {
  const { data, report, read } = peers({ '': JSON.stringify({ type, value }) });
  expect((await read(data.scalar('limit', OPEN))).value).toEqual(expected);
  const found = await report();
  expect(found).toMatchObject({ name: 'limit', scope: 'eu', kind: 'scalar', lifespan: 'persistent' });
  expect(found?.entries).toMatchObject([{ scalar: { type, value } }]);
});

it('writes such a scalar as it is: a reader may refuse fields that it does not know', async () => {
  const { data, textAt, read, wait } = peers({ '': '{"type":"Integer","value":"3"}' });
  const limit = await read(data.scalar('limit', OPEN));
  expect(await wait(limit.set(4, { ifVersion: limit.entry?.version }))).toBe(true);
  expect(textAt()).toBe('{"type":"Integer","value":"4"}');
  expect(await wait(limit.remove())).toBe(true);
  expect(textAt()).toBeUndefined();
});

it.each(['', '10.0.0.7', '::1'])('opens a znode with the data %j as each kind', async (blank) => {
  const { data, textAt, read, wait } = peers({ '': blank });
  const limit = await read(data.scalar('limit', OPEN));
  expect([limit.value, await wait(limit.remove())]).toEqual([undefined, false]);
  expect(await wait(limit.set(1, { ifVersion: 'absent' }))).toBe(true);
  expect(textAt()).toBe('{"type":"Integer","value":"1"}');

  const set = peers({ '': blank });
  await set.wait((await set.read(set.data.set('limit', OPEN))).add('a'));
  expect([set.textAt(), set.textAt(sha256('a'))]).toEqual([blank, '{"type":"String","value":"a"}']);
  expect(await set.report()).toMatchObject({ kind: 'set', size: 1 });

  const map = peers({ '': blank });
  await map.wait((await map.read(map.data.map('limit', OPEN))).set('Virginia', 10));
  expect([map.textAt(), map.textAt(sha256('Virginia'))]).toEqual([blank, VIRGINIA]);
  expect(await map.report()).toMatchObject({ kind: 'map', size: 1 });

  const list = peers({ '': blank });
  await list.wait((await list.read(list.data.list('limit', OPEN))).append(true));
  expect([list.textAt(), list.textAt('0')]).toEqual([blank, '{"type":"Boolean","value":"true"}']);
  expect(await list.report()).toMatchObject({ kind: 'list', size: 1 });
});

it('shows their collections, with collisions, ephemeral elements and znodes that are none', async () => {
  const hash = sha256('3');
  const set = peers({
    '': '',
    [hash]: '{"type":"Integer","value":"3"}',
    [`${hash}-1`]: '{"type":"String","value":"3"}',
    lock: '',
  });
  const found = await set.report();
  expect(found).toMatchObject({ name: 'limit', kind: 'set', lifespan: 'persistent', problem: null });
  expect(found?.entries.map(({ scalar, place, problem }) => [scalar?.type, place, problem])).toEqual([
    ['Integer', 0, null],
    ['String', 1, null],
    [undefined, null, 'no element of a set: no data'],
  ]);
  const opened = await set.read(set.data.set('limit', OPEN));
  expect([...opened.values()].sort()).toEqual([3, '3']);

  const { tree } = peers({ '': '', [sha256('Virginia')]: VIRGINIA }, 'b');
  const { data } = await readSharedData(tree, { connect: 'zk', root: ROOT });
  expect(data).toMatchObject([{ path: PATH, name: null, kind: 'map', lifespan: 'ephemeral', size: 1 }]);
});

it('leaves out an element without a type, and shows the others', async () => {
  const { data, report, read } = peers({
    '': '',
    [sha256('3')]: '{"type":"Integer","value":"3"}',
    [sha256('x')]: '{"type":"","value":"x"}',
  });
  expect((await read(data.set('limit', OPEN))).values()).toEqual([3]);
  const problems = (await report())?.entries.map(({ problem }) => problem);
  expect(problems).toEqual([null, 'no element of a set: {"type":"","value":"x"}']);
});

it('names both kinds where their scalar is opened as another one, and leaves what it cannot read', async () => {
  const { data, wait } = peers({ '': '{"type":"Integer","value":"3"}' });
  await expect(wait(data.set('limit', OPEN))).rejects.toMatchObject({
    fault: 'kind-clash',
    message: 'shared data "limit" of scope "eu": it is a persistent scalar, and not a persistent set',
  });
  for (const text of [
    'x',
    '[]',
    '{"kind":"tree","type":"Integer","value":"3"}',
    '{"type":"Integer","value":3}',
  ]) {
    const foreign = peers({ '': text });
    await expect(foreign.wait(foreign.data.scalar('limit', OPEN))).rejects.toMatchObject({
      fault: 'foreign-znode',
    });
    await expect(foreign.wait(foreign.data.remove('limit', OPEN))).rejects.toMatchObject({
      fault: 'foreign-znode',
    });
    expect(await foreign.report()).toMatchObject({
      name: 'limit',
      kind: null,
      problem: `no shared data: ${text.length > 40 ? `${text.slice(0, 40)}…` : text}`,
    });
  }
  const owned = peers({ '': '{"type":"Integer","value":"3"}' }, 'b');
  const limit = await owned.read(owned.data.scalar('limit', OPEN));
  expect([limit.lifespan, limit.value]).toEqual(['ephemeral', 3]);
});

it('lets go of what is closed: data that is opened for each request does not fill the memory', async () => {
  const { data, read, wait } = peers({});
  const opened = await read(data.map('limit', OPEN));
  opened.close();
  opened.close = () => expect.fail('it is still known');
  await wait(data.close());
});

it('removes the data of all kinds that have a name, where a path strategy keeps kinds apart', async () => {
  const clock = new VirtualClock();
  const tree = new Tree(clock);
  const paths = { ...HASHED_PATHS, datum: ({ name }: { name: string }, kind: string) => `${kind}/${name}` };
  const data = sharedData(tree, { clock, random: seededRandom(1), paths });
  const at = (kind: string) => `${ROOT}/data/${kind}/limit`;
  for (const kind of ['scalar', 'map']) tree.put(at(kind), '', undefined);
  expect(await inVirtualTime(clock, data.remove('limit'))).toBe(true);
  expect(['scalar', 'map'].map((kind) => tree.znodes.has(at(kind)))).toEqual([false, false]);
  expect(await inVirtualTime(clock, data.remove('limit'))).toBe(false);
});
