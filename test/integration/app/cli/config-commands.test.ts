import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, inject, it } from 'vitest';
import type { ZooKeeperClient } from '../../../../src/zookeeper/client/zookeeper-client.js';
import { type InProcessOptions, runInProcess } from '../../../support/in-process.js';
import { killAll, runCli, type TestProcess } from '../../../support/processes.js';
import { RecipeScene } from '../../zookeeper/recipes/recipe-scene.js';

let scene: RecipeScene;
let client: ZooKeeperClient;
let folder: string;
let connect: string;

beforeEach(async () => {
  scene = new RecipeScene();
  connect = `${inject('zookeeper').connect}${scene.chroot}`;
  client = await scene.open();
  folder = await mkdtemp(join(tmpdir(), 'nodelease-config-'));
});
afterEach(async () => {
  await killAll();
  await scene.close();
  await rm(folder, { recursive: true });
});

const env = () => ({ NODELEASE_ZOOKEEPER: connect, USER: 'ada' });

/** `nodelease config …` as a process, as a user has it; the words of a command are separated by spaces. */
const start = (command: string): TestProcess => runCli(['config', ...command.split(' ')], { env: env() });

/** Runs `nodelease config …` to its end, in this process. */
const config = (command: string, options?: InProcessOptions) =>
  runInProcess(['config', ...command.split(' ')], { ...options, env: env() });
const well = (answer: unknown) => ({ code: 0, answer, complaints: '' });

describe('nodelease config', () => {
  it('sets, shows and unsets keys', async () => {
    const setting = start('set --app shop --profile prod db.url=pg://a?x=1 db.pool-size=10 empty=');
    expect(await setting.exit).toEqual({ code: 0, signal: null });
    expect([setting.stdout(), setting.stderr()]).toEqual(['shop,prod: revision 1, 3 keys changed\n', '']);
    expect(await config('set --app application log.level=info')).toEqual(
      well('application: revision 1, 1 key changed\n'),
    );
    expect((await client.read('/config/shop,prod/db/url'))?.data.toString()).toBe('pg://a?x=1');
    expect(await config('ls --app shop --profile prod')).toEqual(
      well(
        [
          'KEY           VALUE       CONTEXT',
          'db.pool-size  10          shop,prod',
          'db.url        pg://a?x=1  shop,prod',
          'empty                     shop,prod',
          'log.level     info        application',
          '',
          '4 keys of shop,prod at revision 1, shop at revision 0, application,prod at revision 0, application at revision 1',
          '',
        ].join('\n'),
      ),
    );
    expect(await config('get db.url --app shop --profile prod')).toEqual(well('pg://a?x=1\n'));
    expect(await config('get db.url --app shop --profile prod --json')).toEqual(
      well('{"key":"db.url","value":"pg://a?x=1","context":"shop,prod"}\n'),
    );
    await config('set --app shop --root /settings a=1');
    expect((await client.read('/settings/shop/a'))?.data.toString()).toBe('1');
    expect(await config('set --app shop a..b=1')).toEqual({
      code: 64,
      answer: '',
      complaints: expect.stringContaining('key: expected names with "." between them'),
    });
    expect(await config('get db.url --app shop')).toEqual({
      code: 1,
      answer: '',
      complaints: 'nodelease: db.url is not set in shop\n',
    });
    expect(await config('unset db.url empty --app shop --profile prod')).toEqual(
      well('shop,prod: revision 2, 2 keys changed\n'),
    );
    expect(await config('unset db.url --app shop --profile prod')).toEqual(
      well('shop,prod: nothing to change\n'),
    );
    expect(JSON.parse((await config('ls --app shop --profile prod --own --json')).answer)).toEqual({
      revisions: { 'shop,prod': 2 },
      values: [{ key: 'db.pool-size', value: '10', context: 'shop,prod' }],
    });
  });

  it('shows the history, what differs, and rolls back', async () => {
    await config('set --app shop a=1 b=1 -m begin');
    await config('set --app shop a=2 --author bob');
    await config('unset --app shop b');
    const history = (await config('history --app shop')).answer.split('\n');
    expect(history[0]).toMatch(/^REVISION {2}AT +AUTHOR +MESSAGE +KEYS$/);
    expect(history[2]).toMatch(/^ {7}2 {2}20\S+Z {2}bob +a$/);
    expect(history[3]).toMatch(/^ {7}1 {2}20\S+Z {2}ada@\S+ +begin +a, b$/);
    expect(history.slice(4)).toEqual(['', '3 revisions of shop', '']);
    expect((await config('diff 1 --app shop')).answer).toBe(
      ['KEY  OLD  NEW', 'a    1    2', 'b    1    -', '', '2 keys of shop differ', ''].join('\n'),
    );
    expect(await config('diff 1 2 --app shop --json')).toEqual(well('[{"key":"a","old":"1","new":"2"}]\n'));
    expect(await config('rollback 1 --app shop --json')).toMatchObject({
      code: 0,
      answer: expect.stringMatching(/^\{"revision":4,"base":3,.*"rollback to revision 1"/),
    });
    expect((await config('get b --app shop')).answer).toBe('1\n');
    expect(await config('rollback 9 --app shop')).toMatchObject({
      code: 1,
      complaints: 'nodelease: there is no revision 9: the history goes from 0 to 4 [CONFIG_HISTORY]\n',
    });
  });

  it('refuses to publish over another revision than the expected one', async () => {
    await config('set --app shop a=1 --expect 0 --author bob');
    expect(await config('set --app shop a=2 --expect 0')).toMatchObject({
      code: 1,
      complaints: expect.stringMatching(
        /^nodelease: shop: expected revision 0, but bob published revision 1 at 20\S+Z \[CONFIG_CONFLICT\]\n$/,
      ),
    });
    expect(await config('set --app shop a=2 --expect 1')).toEqual(well('shop: revision 2, 1 key changed\n'));
  });

  it('has other values for some nodes', async () => {
    await config('set --app shop a=1');
    expect(await config('set --app shop --nodes 0-3 a=2 b=2')).toEqual(
      well('shop@nodes=0-3: revision 1, 2 keys changed\n'),
    );
    expect(await config('get a --app shop --node 3')).toEqual(well('2\n'));
    expect(await config('get a --app shop --node 4')).toEqual(well('1\n'));
    expect((await config('export --app shop --nodes 0-3')).answer).toBe('a=2\nb=2\n');
    expect(await config('set --app shop --nodes 0-3 a=3')).toEqual(
      well('shop@nodes=0-3: revision 2, 1 key changed\n'),
    );
    expect(await config('diff 1 --app shop --nodes 0-3')).toMatchObject({
      answer: expect.stringContaining('a    2    3'),
    });
    expect(await config('rollback 1 --app shop --nodes 0-3')).toEqual(
      well('shop@nodes=0-3: revision 3, 1 key changed\n'),
    );
    expect(await config('get a --app shop --node 3')).toEqual(well('2\n'));
    expect(await config('unset --app shop --nodes 0-3')).toEqual(
      well('shop@nodes=0-3: revision 4, 2 keys changed\n'),
    );
    expect(await config('get a --app shop --node 3')).toEqual(well('1\n'));
  });

  it('exports to files and imports from them', async () => {
    const file = join(folder, 'shop.json');
    await writeFile(file, '{"db":{"url":"x y","ports":[1,2]}}');
    await config('set --app shop old=1');
    expect(await config(`import ${file} --app shop`)).toEqual(well('shop: revision 2, 3 keys changed\n'));
    expect((await config('export --app shop')).answer).toBe(
      'db.ports[0]=1\ndb.ports[1]=2\ndb.url=x y\nold=1\n',
    );
    expect((await config('export --app shop --format env')).answer).toBe(
      "DB_PORTS_0=1\nDB_PORTS_1=2\nDB_URL='x y'\nOLD=1\n",
    );
    expect(await config('import - --app shop --replace', { stdin: 'db.url=gr\\u00fcn\n' })).toEqual(
      well('shop: revision 3, 4 keys changed\n'),
    );
    expect((await config('export --app shop --format json')).answer).toBe('{\n  "db.url": "grün"\n}\n');
    expect(await config('import - --app shop --replace', { stdin: '' })).toMatchObject({
      code: 64,
      complaints: expect.stringContaining('FILE: expected values with --replace'),
    });
    expect((await config('get db.url --app shop')).answer).toBe('grün\n');
    expect(await config('import missing.env --app shop')).toMatchObject({
      code: 64,
      complaints: expect.stringContaining('(ENOENT)'),
    });
    expect(await config('import - --app shop --replace --format json', { stdin: '{}' })).toEqual(
      well('shop: revision 4, 1 key changed\n'),
    );
  });

  it('reports changes, and shows which node runs which revision', async () => {
    await config('set --app shop a=1');
    const watch = start('watch --app shop --node 3');
    await watch.waitForOutput(/shop at revision 1, application at revision 0: watching/);
    await expect
      .poll(async () => (await config('status --app shop')).answer)
      .toMatch(/^ {6}3 {9}1 {2}20\S+Z\n\n1 node, 0 behind, of shop at revision 1/m);
    await config('set --app shop a=2');
    await watch.waitForOutput(/a: 1 -> 2\n/);
    await config('set --app application c=3');
    await watch.waitForOutput(/a: 1 -> 2\n[\s\S]*c: - -> 3/);
    const status = async () => JSON.parse((await config('status --app shop --json')).answer);
    await expect.poll(status).toEqual({
      revisions: { shop: 2, application: 1 },
      nodes: [{ nodeId: 3, revisions: { shop: 2, application: 1 }, at: expect.any(String), behind: [] }],
    });
    watch.kill('SIGTERM');
    expect(await watch.exit).toEqual({ code: 0, signal: null });
    expect(watch.stderr()).toBe('');
    await expect.poll(async () => (await status()).nodes).toEqual([]);
  });

  it('shows a node that is behind', async () => {
    await config('set --app shop a=1');
    await client.createWithParents(
      '/config/.nodelease/seen/shop/7',
      '{"revisions":{"shop":0},"at":"2026-01-01T00:00:00.000Z"}',
      'ephemeral',
    );
    await client.createWithParents('/config/.nodelease/seen/shop/8', 'what', 'ephemeral');
    expect((await config('status --app shop')).answer).toBe(
      [
        'NODE ID  REVISION  SINCE                     BEHIND IN',
        '      7         0  2026-01-01T00:00:00.000Z  shop',
        '',
        '1 node, 1 behind, of shop at revision 1, application at revision 0',
        '',
      ].join('\n'),
    );
  });
});
