import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { type PathStrategy, placeName, sha256 } from '../../../../src/zookeeper/shared-data/layout.js';
import { readSharedData } from '../../../../src/zookeeper/shared-data/report.js';
import { TypedText } from '../../../../src/zookeeper/shared-data/scalar-codec.js';
import { type SharedData, sharedData } from '../../../../src/zookeeper/shared-data/shared-data.js';
import { stopProxies } from '../../../support/network/proxies.js';
import { RecipeScene } from '../recipes/recipe-scene.js';

let scene: RecipeScene;
const opened: SharedData[] = [];

beforeEach(() => {
  scene = new RecipeScene();
});
afterEach(async () => {
  await Promise.all(opened.splice(0).map((each) => each.close()));
  await scene.close();
  await stopProxies();
});

/** Puts everything at one place. */
const COLLIDING: PathStrategy = { datum: ({ name }) => name, element: () => 'bad' };

async function open(paths?: PathStrategy) {
  const client = await scene.open();
  const data = sharedData(client, { paths });
  opened.push(data);
  return { client, data };
}

describe('shared data', () => {
  it('is stored in the znodes of the specification, to the byte', async () => {
    const { client, data } = await open();
    const states = await data.map('states', { scope: 'us' });
    await states.set('Virginia', 10);
    const folder = `/monastery/root/data/${sha256('{"name":"states","scope":"us"}')}`;
    expect(String((await client.read(folder))?.data)).toBe(
      '{"address":{"name":"states","scope":"us"},"kind":"map","lifespan":"persistent"}',
    );
    expect(String((await client.read(`${folder}/${sha256('Virginia')}`))?.data)).toBe(
      '{"key":{"type":"String","value":"Virginia"},"value":{"type":"Integer","value":"10"}}',
    );
    const limit = await data.scalar('limit');
    await limit.set(3);
    expect(String((await client.read(limit.path))?.data)).toBe(
      '{"address":{"name":"limit","scope":""},"kind":"scalar","lifespan":"persistent","type":"Integer","value":"3"}',
    );
    const list = await data.list('steps');
    await list.append('a');
    await list.append('b');
    expect(String((await client.read(`${list.path}/1`))?.data)).toBe('{"type":"String","value":"b"}');
  });

  it('is seen by another client, with its changes', async () => {
    const [{ data: a }, { data: b }] = [await open(), await open()];
    const mine = await a.map<string, number>('weights');
    const theirs = await b.map<string, number>('weights');
    await theirs.ready;
    const reported: string[] = [];
    theirs.onChange((changes) =>
      reported.push(...changes.map(({ type, entry }) => `${type} ${entry.key} ${entry.value}`)),
    );
    await mine.set('x', 1);
    await expect.poll(() => theirs.get('x')).toBe(1);
    await mine.set('x', 2.5);
    await expect.poll(() => theirs.get('x')).toBe(2.5);
    expect(await mine.remove('x')).toBe(true);
    await expect.poll(() => theirs.size).toBe(0);
    expect(await mine.remove('x')).toBe(false);
    expect(reported).toEqual(['added x 1', 'changed x 2.5', 'removed x 2.5']);
    expect(theirs.stale).toBeUndefined();
  });

  it('keeps values apart that have one text, and a chain without a gap', async () => {
    const { client, data } = await open(COLLIDING);
    const set = await data.set('mixed');
    const values = [3, '3', 3n, new TypedText('Odd', '3')];
    for (const value of values) await set.add(value);
    await set.add('3');
    await expect.poll(() => set.size).toBe(4);
    expect(values.every((value) => set.has(value))).toBe(true);
    expect([...((await client.children(set.path)) ?? [])].sort()).toEqual(
      [0, 1, 2, 3].map((n) => placeName('bad', n)),
    );
    expect(await set.remove(3)).toBe(true);
    expect([...((await client.children(set.path)) ?? [])].sort()).toEqual(
      [0, 1, 2].map((n) => placeName('bad', n)),
    );
    await expect.poll(() => values.filter((value) => set.has(value))).toEqual(values.slice(1));
    expect(String((await client.read(`${set.path}/bad`))?.data)).toBe('{"type":"Odd","value":"3"}');
  });

  it('is written under a condition where asked to, also when an entry was made again', async () => {
    const { data } = await open();
    const map = await data.map<string, number>('cas');
    expect(await map.set('k', 1, { ifVersion: 'absent' })).toBe(true);
    expect(await map.set('k', 2, { ifVersion: 'absent' })).toBe(false);
    await expect.poll(() => map.get('k')).toBe(1);
    const first = map.entry('k')?.version as string;
    expect(await map.set('k', 2, { ifVersion: first })).toBe(true);
    expect(await map.set('k', 3, { ifVersion: first })).toBe(false);
    await map.remove('k');
    await map.set('k', 4);
    expect(await map.remove('k', { ifVersion: first })).toBe(false);
    const scalar = await data.scalar('one');
    expect(await scalar.set('a', { ifVersion: 'absent' })).toBe(true);
    expect(await scalar.set('b', { ifVersion: 'absent' })).toBe(false);
    await expect.poll(() => scalar.value).toBe('a');
    expect(await scalar.remove({ ifVersion: scalar.entry?.version })).toBe(true);
    expect(await scalar.remove()).toBe(false);
  });

  it('closes a list up, and names an element that is not there', async () => {
    const { client, data } = await open();
    const list = await data.list<string>('steps');
    for (const value of ['a', 'b', 'c', 'd']) await list.append(value);
    await list.remove(1);
    await list.set(0, 'A');
    await expect.poll(() => list.values()).toEqual(['A', 'c', 'd']);
    expect([...((await client.children(list.path)) ?? [])].sort()).toEqual(['0', '1', '2']);
    await expect(list.remove(3)).rejects.toMatchObject({ code: 'SHARED_DATA_FAILED', fault: 'no-entry' });
    await expect(list.set(-1, 'x')).rejects.toThrow('index: expected a whole number of at least 0, got -1');
  });

  it('refuses another kind or lifespan under a name, and names both', async () => {
    const { data } = await open();
    await (await data.set('users')).add('ann');
    await expect(data.map('users')).rejects.toThrow(
      'shared data "users": it is a persistent set, and not a persistent map',
    );
    await expect(data.set('users', { lifespan: 'ephemeral' })).rejects.toMatchObject({ fault: 'kind-clash' });
    const late = await data.scalar('late');
    await (await data.list('late')).append(1);
    await expect(late.set(1)).rejects.toThrow(
      'shared data "late": it is a persistent list, and not a persistent scalar',
    );
  });

  it('names a limit of ZooKeeper before it bites', async () => {
    const { data } = await open();
    const map = await data.map('large');
    await expect(map.set('k', 'x'.repeat(1_100_000))).rejects.toThrow(
      /takes 11\d{5} bytes in one request.*jute\.maxbuffer/,
    );
    const list = await data.list('large list');
    for (let n = 0; n < 5; n += 1) await list.append('x'.repeat(300_000));
    await expect(list.remove(0)).rejects.toMatchObject({ fault: 'too-large' });
    expect(await list.remove(2)).toBe(true);
  });

  it('shows what it cannot read, and leaves it', async () => {
    const { client, data } = await open();
    const set = await data.set('users');
    await set.add('ann');
    await client.create(`${set.path}/foreign`, 'hello', 'persistent');
    await set.add('bob');
    await expect.poll(() => set.size).toBe(2);
    const report = async () => (await readSharedData(client, { connect: 'zk', root: data.root })).data;
    expect(await report()).toMatchObject([
      { name: 'users', scope: '', kind: 'set', lifespan: 'persistent', path: set.path, size: 3 },
    ]);
    expect((await report())[0]?.entries.map(({ problem }) => problem)).toEqual([
      null,
      null,
      'no element of a set: hello',
    ]);
    expect(await data.remove('users')).toBe(true);
    expect(await report()).toEqual([]);
    expect(await data.remove('users')).toBe(false);
  });
});

describe('ephemeral shared data', () => {
  it('goes with the client that contributes it, and chain and list close up', async () => {
    const [{ data: a, client }, { data: b }, { data: c }] = [
      await open(COLLIDING),
      await open(COLLIDING),
      await open(COLLIDING),
    ];
    const options = { lifespan: 'ephemeral' } as const;
    const sets = await Promise.all([a, b, c].map((each) => each.set<string>('present', options)));
    const lists = await Promise.all([a, b, c].map((each) => each.list<string>('order', options)));
    for (const [n, set] of sets.entries()) await set.add(`node ${n}`);
    for (const [n, list] of lists.entries()) await list.append(`node ${n}`);
    await expect.poll(() => sets[2]?.size).toBe(3);
    await client.close();
    await expect.poll(() => sets[2]?.values().sort()).toEqual(['node 1', 'node 2']);
    await expect.poll(() => lists[2]?.values()).toEqual(['node 1', 'node 2']);
    const other = await scene.open();
    await expect
      .poll(async () => [...((await other.children('/monastery/root/data/present')) ?? [])].sort())
      .toEqual(['bad', 'bad-1']);
    await expect
      .poll(async () => [...((await other.children('/monastery/root/data/order')) ?? [])].sort())
      .toEqual(['0', '1']);
    await expect.poll(() => sets[1]?.values().sort()).toEqual(['node 1', 'node 2']);
  });

  it("is its own node's: others are refused, and may have it when it has gone", async () => {
    const [{ data: a, client }, { data: b }] = [await open(), await open()];
    const options = { lifespan: 'ephemeral' } as const;
    const [mine, theirs] = [await a.map('claims', options), await b.map('claims', options)];
    await mine.set('port', 1);
    await expect(theirs.set('port', 2)).rejects.toMatchObject({ fault: 'owned-by-other' });
    await expect.poll(() => theirs.get('port')).toBe(1);
    await expect(theirs.remove('port')).rejects.toMatchObject({ fault: 'owned-by-other' });
    const [one, two] = [await a.set('members', options), await b.set('members', options)];
    await one.add('x');
    await two.add('x');
    const scalar = await a.scalar('leader', options);
    await scalar.set('a');
    await expect((await b.scalar('leader', options)).set('b')).rejects.toMatchObject({
      fault: 'owned-by-other',
    });
    await mine.set('port', 3);
    await expect.poll(() => theirs.get('port')).toBe(3);
    await client.close();
    await expect.poll(() => theirs.has('port')).toBe(false);
    await theirs.set('port', 4);
    await expect.poll(() => theirs.get('port')).toBe(4);
    await expect.poll(() => two.entry('x')?.owner).toBe(theirs.entry('port')?.owner);
    expect(await two.remove('x')).toBe(true);
    await expect.poll(() => two.size).toBe(0);
    await expect(theirs.set('port', 5, { ifVersion: 'absent' })).rejects.toThrow(
      /ifVersion: expected none for ephemeral data/,
    );
  });
});

describe('nodes', () => {
  it('are announced under their numbers, known to others, and gone for good', async () => {
    const [{ data: a, client }, { data: b }] = [await open(), await open()];
    const list = b.nodes();
    await list.ready;
    const first = await a.announce({ data: 'hello' });
    const second = await a.announce();
    expect([first.path, second.id]).toEqual(['/monastery/root/nodes/node-0000000000', 'node-0000000001']);
    await expect
      .poll(() => list.entries().map(({ id, data }) => `${id} ${data}`))
      .toEqual(['node-0000000000 hello', 'node-0000000001 ']);
    await first.leave();
    expect(first.state).toEqual({ status: 'disconnected', reason: 'left' });
    await expect.poll(() => list.entries().map(({ id }) => id)).toEqual(['node-0000000001']);
    await client.remove(second.path);
    await expect.poll(() => second.state).toEqual({ status: 'disconnected', reason: 'removed' });
    expect((await a.announce()).id).toBe('node-0000000002');
  });
});
