import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, inject, it } from 'vitest';
import { systemClock as clock, systemRandom as random } from '../../../../src/core/base/system.js';
import type { ZooKeeperClient } from '../../../../src/zookeeper/client/zookeeper-client.js';
import { HASHED_PATHS } from '../../../../src/zookeeper/shared-data/layout.js';
import { TypedText } from '../../../../src/zookeeper/shared-data/scalar-codec.js';
import { type SharedData, sharedData } from '../../../../src/zookeeper/shared-data/shared-data.js';
import { runInProcess } from '../../../support/in-process.js';
import { stopProxies, throughProxy } from '../../../support/network/proxies.js';
import { killAll, runCli } from '../../../support/processes.js';
import { restrict } from '../../zookeeper/discovery/discovery-support.js';
import { RecipeScene } from '../../zookeeper/recipes/recipe-scene.js';
import { newFolder, removeFolders } from './run-support.js';

const TOKEN = 'a-token-of-many-characters';

let scene: RecipeScene;
let client: ZooKeeperClient;
let shared: SharedData;
let connect: string;

beforeEach(async () => {
  scene = new RecipeScene();
  connect = `${inject('zookeeper').connect}${scene.chroot}`;
  client = await scene.open();
  shared = sharedData(client, { clock, random });
});
afterEach(async () => {
  await killAll();
  await shared.close();
  await scene.close();
  removeFolders();
});

const env = () => ({ NODELEASE_ZOOKEEPER: connect });
/** `nodelease data …` as a process, as a user has it. */
const start = (...args: string[]) => runCli(['data', ...args], { env: env() });
/** Runs `nodelease data …` to its end, in this process. */
const data = (...args: string[]) => runInProcess(['data', ...args], { env: env() });
const well = (answer: string) => ({ code: 0, answer, complaints: '' });
const pathOf = (name: string, scope = '') =>
  `/monastery/root/data/${HASHED_PATHS.datum({ name, scope }, 'map')}`;

describe('nodelease data', () => {
  it('writes scalars of all types to the byte, and prints them as they are', async () => {
    const setting = start('set', 'limit', '3', '--type', 'Integer');
    expect(await setting.exit).toEqual({ code: 0, signal: null });
    expect([setting.stdout(), setting.stderr()]).toEqual(['written\n', '']);
    expect((await client.read(pathOf('limit')))?.data.toString()).toBe(
      '{"address":{"name":"limit","scope":""},"kind":"scalar","lifespan":"persistent","type":"Integer","value":"3"}',
    );
    expect(await data('get', 'limit')).toEqual(well('3\n'));
    expect(
      await data('set', 'limit', '{"b":1, "a":[]}', '--type', 'Json', '--scope', 'prod', '--json'),
    ).toEqual(well('{"root":"/monastery/root","name":"limit","scope":"prod","state":"written"}\n'));
    expect(await data('get', 'limit', '--scope', 'prod')).toEqual(well('{"a":[],"b":1}\n'));
    expect(await data('rm', 'limit')).toEqual(well('removed\n'));
    expect(await data('get', 'limit')).toMatchObject({
      code: 1,
      answer: '',
      complaints: expect.stringContaining('there is no shared data "limit"'),
    });
    expect(await data('rm', 'limit')).toMatchObject({ code: 1, answer: '' });
  });

  it('changes maps, sets and lists that nodes see', async () => {
    const map = await shared.map<string, number>('regions');
    expect(await data('put', 'regions', 'Virginia', '10', '--type', 'Integer')).toEqual(well('written\n'));
    await expect.poll(() => map.get('Virginia')).toBe(10);
    expect(await data('get', 'regions', 'Virginia')).toEqual(well('10\n'));
    expect(await data('rm', 'regions', 'Virginia')).toEqual(well('removed\n'));
    expect(await data('rm', 'regions', 'Virginia')).toMatchObject({ code: 1 });
    expect(await data('get', 'regions', 'Virginia')).toMatchObject({
      code: 1,
      complaints: expect.stringContaining('has no entry "Virginia"'),
    });

    for (const value of ['b', 'a', 'b']) expect(await data('add', 'tags', value)).toEqual(well('added\n'));
    for (const value of ['x', 'y', 'z'])
      expect(await data('add', 'steps', value, '--kind', 'list')).toEqual(well('added\n'));
    expect(await data('add', 'steps', 'last')).toEqual(well('added\n'));
    expect(await data('rm', 'steps', '1')).toEqual(well('removed\n'));
    const [tags, steps] = [await shared.set('tags'), await shared.list('steps')];
    await Promise.all([tags.ready, steps.ready]);
    expect([tags.values().sort(), steps.values()]).toEqual([
      ['a', 'b'],
      ['x', 'z', 'last'],
    ]);
    expect(await data('rm', 'tags')).toEqual(well('removed\n'));
    expect(await client.read(pathOf('tags'))).toBeUndefined();

    await client.create(pathOf('theirs'), 'x', 'persistent');
    for (const args of [
      ['rm', 'theirs'],
      ['set', 'theirs', '1'],
    ])
      expect(await data(...args)).toMatchObject({ code: 69, answer: '' });
    expect((await client.read(pathOf('theirs')))?.data.toString()).toBe('x');
  });

  it('lists everything: types, sizes, owners, collisions, unknown types, foreign and damaged znodes', async () => {
    const node = await shared.announce();
    const gossip = await shared.map('gossip', { scope: 'eu', lifespan: 'ephemeral' });
    await gossip.set('node-9', false);
    const ids = await shared.set('ids');
    for (const value of [3, '3', new TypedText('Instant', '3')]) await ids.add(value);
    await client.create(`${pathOf('ids')}/lost`, '\u001b[31m{', 'persistent');
    await client.create('/monastery/root/data/foreign', 'hello', 'persistent');
    await client.createWithParents(
      '/monastery/root/data/folder/other',
      '{"type":"Integer","value":"7"}',
      'persistent',
    );
    await client.create('/monastery/root/data/secret', 'x', 'persistent');
    await restrict(connect, '/monastery/root/data/secret', ['create']);

    const { code, answer, complaints } = await data('ls', '--json');
    expect({ code, complaints }).toEqual({ code: 0, complaints: '' });
    const { data: found, ...head } = JSON.parse(answer);
    expect(head).toEqual({ zookeeper: connect, root: '/monastery/root', exists: true });
    const [first, second, ...others] = found;
    expect(first).toMatchObject({
      name: 'gossip',
      scope: 'eu',
      kind: 'map',
      lifespan: 'ephemeral',
      size: 1,
      types: ['Boolean'],
      owners: [node.id],
    });
    expect(second).toMatchObject({
      name: 'ids',
      size: 4,
      types: ['Instant', 'Integer', 'String'],
      collisions: 2,
    });
    expect(second.problems).toEqual(['unknown type Instant', expect.stringContaining('no element of a set')]);
    expect(others.map(({ path, problem }: { path: string; problem: string }) => [path, problem])).toEqual([
      ['/monastery/root/data/secret', 'may not be read: no-auth'],
      ['/monastery/root/data/foreign', 'no shared data: hello'],
      // Another implementation's, whose name is not known.
      ['/monastery/root/data/folder/other', null],
    ]);
    const table = (await data('ls')).answer;
    expect(table).toMatch(/^NAME +SCOPE +KIND +LIFESPAN +ENTRIES +BYTES +TYPE +COLLIDE +OWNER +PROBLEM\n/);
    expect(table).toMatch(/\ngossip +eu +map +ephemeral +1 +\d+ +Boolean +node-\d{10}\n/);
    expect((await data('ls', '--kind', 'map')).answer).not.toContain('ids');

    const entries = (await data('get', 'ids')).answer;
    expect(entries).not.toContain('\u001b');
    expect(entries).toMatch(/\n +3 +Instant +2 +unknown type Instant\n/);
    expect(await data('rm', 'ids', '3')).toMatchObject({
      code: 64,
      complaints: expect.stringContaining('has 3 entries "3": expected --type'),
    });
    expect(await data('rm', 'ids', '3', '--type', 'Integer')).toEqual(well('removed\n'));
    expect(
      JSON.parse((await data('get', 'ids', '3', '--json')).answer)
        .entries.map(({ place }: { place: number }) => place)
        .sort(),
    ).toEqual([0, 1]);
  });

  it('leaves ephemeral data to the node that contributes it, and refuses another kind by both names', async () => {
    const gossip = await shared.map('gossip', { lifespan: 'ephemeral' });
    await gossip.set('a', 1);
    expect(await data('put', 'gossip', 'b', '1')).toMatchObject({
      code: 64,
      complaints: expect.stringContaining('is ephemeral'),
    });
    expect(await data('rm', 'gossip', 'a')).toMatchObject({
      code: 64,
      complaints: expect.stringContaining('is ephemeral'),
    });
    await data('set', 'limit', '1');
    expect(await data('put', 'limit', 'b', '1')).toMatchObject({
      code: 64,
      complaints:
        'nodelease: shared data "limit": it is a persistent scalar, and not a persistent map [SHARED_DATA_FAILED]\n',
    });
  });

  it('says that there is none at this root', async () => {
    expect(await data('ls', '--root', '/other')).toMatchObject({
      code: 0,
      answer: expect.stringContaining('There is no such shared data at /other of'),
    });
  });
});

describe('nodelease data watch', () => {
  it('shows what there is and each change, by name', async () => {
    await data('set', 'limit', '1', '--type', 'Integer');
    const watch = start('watch');
    await watch.waitForOutput(
      /scalar "limit" is there: Integer 1\n.* 1 znode of shared data at \/monastery\/root of .*: watching\n/,
    );
    await data('set', 'limit', '2', '--type', 'Integer');
    await watch.waitForOutput(/scalar "limit" changed: Integer 1 → Integer 2\n/);
    const map = await shared.map('regions', { scope: 'eu' });
    await map.set('Paris', 'open');
    await watch.waitForOutput(
      /map "regions" of scope "eu" added\n.* map "regions" of scope "eu" entry "Paris" added: String open\n/,
    );
    await map.remove('Paris');
    await watch.waitForOutput(/entry "Paris" removed: String open\n/);
    await map.set('Paris', 'again');
    await shared.remove('regions', { scope: 'eu' });
    await watch.waitForOutput(/map "regions" of scope "eu" removed\n/);
    await map.set('Rome', 'new');
    await watch.waitForOutput(/map "regions" of scope "eu" added\n(.*\n)*.*entry "Rome" added: String new\n/);
    watch.kill('SIGINT');
    expect((await watch.exit).code).toBe(0);
  });

  it('shows a single datum, as JSON', async () => {
    const watch = start('watch', 'mine', '--json');
    await watch.waitForOutput(/"change":"watching"/);
    await data('set', 'other', '1');
    await data('set', 'mine', 'yes');
    await watch.waitForOutput(/"change":"added"/);
    const changes = watch
      .stdout()
      .trim()
      .split('\n')
      .map((line) => JSON.parse(line));
    expect(changes).toMatchObject([
      { change: 'watching', kind: 'connection' },
      {
        change: 'added',
        name: 'mine',
        kind: 'scalar',
        entry: { scalar: { type: 'String', value: 'yes' }, owner: null },
        previous: null,
      },
    ]);
  });

  it('shows after a lost connection what has changed meanwhile', async () => {
    await data('set', 'limit', '1');
    const { proxy, through } = await throughProxy(inject('zookeeper').connect);
    try {
      const watch = runCli(['data', 'watch', '--zookeeper', `${through}${scene.chroot}`]);
      await watch.waitForOutput(/: watching\n/);
      proxy.cut();
      await watch.waitForOutput(/connection to .* lost/);
      await data('set', 'limit', '2');
      await data('add', 'tags', 'a');
      proxy.heal();
      await watch.waitForOutput(/scalar "limit" changed: String 1 → String 2\n/);
      await watch.waitForOutput(/set "tags" added: String a\n/);
    } finally {
      await stopProxies();
    }
  });
});

describe('the console with --console-data', () => {
  it('has entries changed with --allow-writes by holders of the token, where they are as they were seen', async () => {
    const map = await shared.map<string, number>('limits');
    await map.set('eu', 1);
    await (await shared.map('gossip', { lifespan: 'ephemeral' })).set('eu', 1);
    await expect.poll(() => map.entry('eu')).toBeDefined();
    const folder = newFolder();
    writeFileSync(join(folder, 'token'), TOKEN);
    const open = async (...more: string[]) => {
      const options = [
        '--http',
        '127.0.0.1:0',
        '--store',
        `file:${folder}/store`,
        '--zookeeper',
        connect,
        '--console-data',
        '/monastery/root',
      ];
      const server = runCli(['console', ...options, '--bearer-token-file', join(folder, 'token'), ...more]);
      const [, url = ''] = await server.waitForOutput(/^(http:\/\/\S+)$/m);
      return async (method: string, edit: object, token = TOKEN) => {
        const headers = {
          authorization: `Bearer ${token}`,
          'content-type': 'application/json',
          connection: 'close',
        };
        const named = {
          root: '/monastery/root',
          name: 'limits',
          scope: '',
          kind: 'map',
          key: { type: 'String', value: 'eu' },
          ...edit,
        };
        const response = await fetch(new URL('/api/data', url), {
          method,
          headers,
          body: JSON.stringify(named),
        });
        return [
          response.status,
          response.status === 204 ? '' : ((await response.json()) as { message: string }).message,
        ];
      };
    };
    const change = await open('--allow-writes');
    const version = map.entry('eu')?.version;
    const value = { type: 'Integer', value: '2' };
    expect(await change('PUT', { value, ifVersion: version })).toEqual([204, '']);
    await expect.poll(() => map.get('eu')).toBe(2);
    expect(await change('PUT', { value, ifVersion: version })).toEqual([
      404,
      expect.stringContaining('has changed or gone meanwhile'),
    ]);
    expect(await change('DELETE', { entry: { value: 'eu' }, ifVersion: version })).toMatchObject([
      404,
      expect.any(String),
    ]);
    expect(await change('PUT', { value: { type: 'Integer', value: 'x' } })).toEqual([
      400,
      expect.stringContaining('of the type Integer'),
    ]);
    expect(await change('PUT', { value, name: 'gossip' })).toEqual([
      400,
      expect.stringContaining('ephemeral'),
    ]);
    expect(await change('PUT', { value, root: '/other' })).toEqual([
      400,
      expect.stringContaining('expected one of /monastery/root'),
    ]);
    expect(await change('PUT', {})).toEqual([400, expect.stringContaining('a text and its type')]);
    expect(await change('DELETE', { entry: null })).toEqual([
      400,
      expect.stringContaining('the text of its key, index or value'),
    ]);
    expect((await change('PUT', { value }, 'another-token-of-16-characters'))[0]).toBe(401);
    expect(map.get('eu')).toBe(2);
    expect(await change('DELETE', { entry: { value: 'eu' }, ifVersion: map.entry('eu')?.version })).toEqual([
      204,
      '',
    ]);
    await expect.poll(() => map.size).toBe(0);
    const changeNothing = await open();
    expect(await changeNothing('PUT', { value })).toEqual([403, 'this server is read-only']);
  });
});
