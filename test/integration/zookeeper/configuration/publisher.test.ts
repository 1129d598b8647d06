import { afterEach, beforeEach, describe, expect, inject, it } from 'vitest';
import { ConfigError } from '../../../../src/core/base/errors.js';
import { systemClock, systemRandom } from '../../../../src/core/base/system.js';
import { openZooKeeper } from '../../../../src/zookeeper/client/zookeeper-client.js';
import { ConfigConflictError } from '../../../../src/zookeeper/configuration/index.js';
import { stopProxies } from '../../../support/network/proxies.js';
import { VirtualClock } from '../../../support/virtual-clock.js';
import { beforeFirst } from '../recipes/before-calls.js';
import { RecipeScene } from '../recipes/recipe-scene.js';
import { keys, publisher, treeAt } from './config-scene.js';

let scene: RecipeScene;
beforeEach(() => {
  scene = new RecipeScene();
});
afterEach(async () => {
  await scene.close();
  await stopProxies();
});

describe('a publish', () => {
  it('is written as Spring reads it, with a record next to it of what was there before', async () => {
    const client = await scene.open();
    const config = publisher(client);
    const first = await config.publish(
      keys({ 'db.url': 'pg://a', 'db.pool-size': '10', greeting: 'grüß dich' }),
      { message: 'begin' },
    );
    expect(first).toMatchObject({ revision: 1, base: 0, author: 'ada', message: 'begin' });
    expect(await treeAt(client)).toEqual({
      '/config/shop,prod': '',
      '/config/shop,prod/db': '',
      '/config/shop,prod/db/pool-size': '10',
      '/config/shop,prod/db/url': 'pg://a',
      '/config/shop,prod/greeting': 'grüß dich',
    });
    const second = await config.publish(keys({ 'db.url': 'pg://b', greeting: null, fresh: '' }));
    expect(second?.changes).toEqual([
      { key: 'db.url', old: 'pg://a', new: 'pg://b' },
      { key: 'greeting', old: 'grüß dich', new: null },
      { key: 'fresh', old: null, new: '' },
    ]);
    expect(await config.history()).toEqual([second, first]);
    expect(await config.publish(keys({ 'db.url': 'pg://b', nothing: null }))).toBeUndefined();
    // Of two values for one key the last one counts, also where it is the present one.
    expect(
      await config.publish([...keys({ 'db.url': 'pg://c' }), ...keys({ 'db.url': 'pg://b' })]),
    ).toBeUndefined();
  });

  it('leaves what others have written as it is, and takes it for what it is', async () => {
    const client = await scene.open();
    await client.createWithParents('/config/shop,prod/db.url', 'by hand', 'persistent');
    await client.createWithParents('/config/shop,prod/a/b', 'x', 'persistent');
    const config = publisher(client);
    const published = await config.publish(keys({ 'db.url': 'ours', a: 'above', c: 'new' }));
    expect(published?.changes[0]).toEqual({ key: 'db.url', old: 'by hand', new: 'ours' });
    await client.setData('/config/shop,prod/a/b', 'y');
    await config.publish(keys({ a: null, c: null }));
    expect(await treeAt(client)).toEqual({
      '/config/shop,prod': '',
      '/config/shop,prod/a': '',
      '/config/shop,prod/a/b': 'y',
      '/config/shop,prod/db.url': 'ours',
    });
    await config.publish(keys({ 'a.b': null, 'db.url': null }));
    expect(await treeAt(client)).toEqual({ '/config/shop,prod': '' });
  });

  it('of which one part cannot be done does nothing', async () => {
    const client = await scene.open();
    const config = publisher(client);
    await config.publish(keys({ 'a.b': '1', empty: '' }));
    await expect(config.publish(keys({ c: '1', a: '' }))).rejects.toThrow(
      /^a: expected a value that is not empty, as there is a\.b below it/,
    );
    await expect(config.publish(keys({ c: '1', 'empty.d': '1' }))).rejects.toThrow(
      /^empty: expected a value that is not empty/,
    );
    for (const key of ['', 'a..b', '.a', 'a/b', 'a\u0000'])
      await expect(config.publish(keys({ c: '1', [key]: '1' }))).rejects.toThrow(ConfigError);
    await expect(config.publish(keys({ c: '\ud800' }))).rejects.toThrow(/whole characters/);
    await expect(config.publish(keys({ c: 'x'.repeat(600_000) }))).rejects.toThrow(
      /at most 1000000 bytes in one revision/,
    );
    const many = Array.from({ length: 3_000 }, (_, n) => [`${'k'.repeat(100)}${n}`, '1']);
    await expect(config.publish(keys(Object.fromEntries(many)))).rejects.toThrow(
      /^changes: expected at most 1000000 bytes in one revision/,
    );
    expect((await config.read()).properties).toEqual(
      new Map([
        ['empty', ''],
        ['a.b', '1'],
      ]),
    );
    expect(await config.history()).toHaveLength(1);
  });

  it('of a stale publisher conflicts, and says who was first', async () => {
    const [one, other] = [publisher(await scene.open()), publisher(await scene.open(), { author: 'bob' })];
    await one.publish(keys({ a: '1' }), { expect: 0 });
    await other.publish(keys({ a: '2' }), { expect: 1 });
    const conflict = one.publish(keys({ a: '3' }), { expect: 1 });
    await expect(conflict).rejects.toThrow(
      /^shop,prod: expected revision 1, but bob published revision 2 at 20/,
    );
    await expect(conflict).rejects.toMatchObject({
      code: 'CONFIG_CONFLICT',
      revision: 2,
      author: 'bob',
    } satisfies Partial<ConfigConflictError>);
    await expect(one.publish(keys({ a: '3' }), { expect: 0 })).rejects.toThrow(ConfigConflictError);
    // Without an expectation it comes after the other one.
    expect(await one.publish(keys({ a: '3' }))).toMatchObject({
      revision: 3,
      changes: [{ key: 'a', old: '2', new: '3' }],
    });
  });

  it('loses to one that comes between its read and its write, or to a direct change, and takes that into account', async () => {
    const [client, other] = [await scene.open(), await scene.open()];
    const direct = beforeFirst(
      client,
      'multi',
      async () => void (await other.createWithParents('/config/shop,prod/a', 'direct', 'shared')),
    );
    expect(await publisher(direct).publish(keys({ a: '1' }))).toMatchObject({
      revision: 1,
      changes: [{ old: 'direct', new: '1' }],
    });
    const late = beforeFirst(
      client,
      'multi',
      async () => void (await publisher(other).publish(keys({ a: '2' }))),
    );
    expect(await publisher(late).publish(keys({ a: '3' }))).toMatchObject({
      revision: 3,
      base: 2,
      changes: [{ old: '2', new: '3' }],
    });
    const stale = beforeFirst(
      client,
      'multi',
      async () => void (await publisher(other).publish(keys({ a: '4' }))),
    );
    await expect(publisher(stale).publish(keys({ a: '5' }), { expect: 3 })).rejects.toThrow(
      'expected revision 3, but ada published revision 4',
    );
  });

  it('finds nothing to change only where nothing was published since it began to read', async () => {
    const [client, other] = [await scene.open(), await scene.open()];
    await publisher(client).publish(keys({ a: '1', b: '1' }));
    // The head is read, then another one publishes, and the values that are read after that are as they
    // should be.
    const { read } = client;
    client.read = async (path, call) => {
      if (path === '/config/shop,prod/a') {
        client.read = read;
        await publisher(other).publish(keys({ a: '2', b: '2' }));
      }
      return read.call(client, path, call);
    };
    await expect(publisher(client).publish(keys({ a: '2' }), { expect: 1 })).rejects.toThrow(
      'expected revision 1, but ada published revision 2',
    );
    expect(await publisher(client).publish(keys({ a: '2' }), { expect: 2 })).toBeUndefined();
  });

  it('whose reply is lost is found out, and not made twice', async () => {
    const [{ client, proxy }, other] = [await scene.openThroughProxy(), await scene.open()];
    const lossy = beforeFirst(client, 'multi', () => {
      proxy.stall('to-client');
      // Once it has been carried out its answer is lost for good.
      void expect
        .poll(async () => (await publisher(other).read()).revision)
        .toBe(1)
        .then(() => proxy.heal());
    });
    expect(await publisher(lossy).publish(keys({ a: '1', b: '2' }))).toMatchObject({ revision: 1 });
    expect(await publisher(other).history()).toHaveLength(1);
  });

  it('whose reply is lost is found out also where another one followed', async () => {
    const [{ client, proxy }, other] = [await scene.openThroughProxy(), await scene.open()];
    const lossy = beforeFirst(client, 'multi', () => {
      proxy.stall('to-client');
      void expect
        .poll(async () => (await publisher(other).read()).revision)
        .toBe(1)
        .then(() => publisher(other, { author: 'bob' }).publish(keys({ a: '2' })))
        .then(() => proxy.heal());
    });
    expect(await publisher(lossy).publish(keys({ a: '1' }), { expect: 0 })).toMatchObject({
      revision: 1,
      author: 'ada',
    });
    expect((await publisher(other).history()).map(({ author }) => author)).toEqual(['bob', 'ada']);
  });

  it('that was never carried out, and whose connection broke, is made once', async () => {
    const { client, proxy } = await scene.openThroughProxy();
    const lossy = beforeFirst(client, 'multi', () => {
      proxy.stall('to-server');
      setTimeout(() => proxy.heal(), 300);
    });
    expect(await publisher(lossy).publish(keys({ a: '1' }))).toMatchObject({ revision: 1 });
    expect(await publisher(await scene.open()).history()).toHaveLength(1);
  });

  it('whose outcome is no longer known says so', async () => {
    const [{ client, proxy }, other] = [await scene.openThroughProxy(), await scene.open()];
    const clock = new VirtualClock();
    const lossy = beforeFirst(client, 'multi', () => proxy.stall('to-client'));
    const published = publisher(lossy, { clock }).publish(keys({ a: '1' }), { timeoutMs: 1_000 });
    const reported = expect(published).rejects.toMatchObject({
      code: 'ZOOKEEPER_FAILED',
      outcome: 'unknown',
      message: 'whether revision 1 of shop,prod was published is unknown: the reply was lost',
    });
    await expect.poll(async () => (await publisher(other).read()).revision).toBe(1);
    await clock.advance(1_000);
    await reported;
    proxy.heal();
  });

  it('keeps the last revisions only', async () => {
    const config = publisher(await scene.open(), { keep: 10 });
    for (let n = 1; n <= 13; n += 1) await config.publish(keys({ n: String(n) }));
    expect((await config.history()).map(({ revision }) => revision)).toEqual([
      13, 12, 11, 10, 9, 8, 7, 6, 5, 4,
    ]);
    await expect(config.rollback(2)).rejects.toThrow('there is no revision 2: the history goes from 3 to 13');
    expect(await config.rollback(3)).toMatchObject({ revision: 14, changes: [{ old: '13', new: '3' }] });
  });
});

describe('a rollback', () => {
  it('is a new revision that undoes what came after, and leaves what others have changed', async () => {
    const client = await scene.open();
    const config = publisher(client);
    await config.publish(keys({ a: '1', b: '1' }));
    await config.publish(keys({ a: '2', c: '2' }));
    await config.publish(keys({ a: '3', b: null }));
    await client.create('/config/shop,prod/direct', 'x', 'persistent');
    expect(await config.diff(1)).toEqual([
      { key: 'a', old: '1', new: '3' },
      { key: 'c', old: null, new: '2' },
      { key: 'b', old: '1', new: null },
    ]);
    expect(await config.diff(3, 2)).toEqual([
      { key: 'a', old: '3', new: '2' },
      { key: 'b', old: null, new: '1' },
    ]);
    const back = await config.rollback(1);
    expect(back).toMatchObject({ revision: 4, message: 'rollback to revision 1' });
    expect(Object.fromEntries((await config.read()).properties)).toEqual({ a: '1', b: '1', direct: 'x' });
    expect(await config.rollback(1)).toBeUndefined();
    expect(
      Object.fromEntries(((await await config.rollback(3)) && (await config.read()).properties) ?? []),
    ).toEqual({
      a: '3',
      c: '2',
      direct: 'x',
    });
    await expect(config.rollback(9)).rejects.toMatchObject({
      code: 'CONFIG_HISTORY',
      fault: 'no-such-revision',
    });
  });

  it('of damaged history is refused', async () => {
    const client = await scene.open();
    const config = publisher(client);
    for (let n = 1; n <= 3; n += 1) await config.publish(keys({ n: String(n) }));
    await client.remove('/config/.nodelease/history/shop,prod/rev-0000000002');
    await expect(config.rollback(1)).rejects.toMatchObject({ fault: 'damaged' });
    await client.setData('/config/.nodelease/history/shop,prod', '{}');
    await expect(config.publish(keys({ n: '4' }))).rejects.toThrow(
      '/config/.nodelease/history/shop,prod is damaged',
    );
  });
});

describe('the largest publish', () => {
  it('goes through, with credentials and in a long chroot, and what is larger is refused before it is sent', async () => {
    const client = await scene.open({ auth: `digest:${'ada'.repeat(10)}:secret` });
    const chroot = `/${'c'.repeat(40)}/${'d'.repeat(40)}`;
    await client.ensurePath(chroot);
    const deep = openZooKeeper({
      ...{
        connect: `${inject('zookeeper').connect}${scene.chroot}${chroot}`,
        auth: `digest:${'ada'.repeat(10)}:secret`,
      },
      ...{ clock: systemClock, random: systemRandom },
    });
    try {
      const config = publisher(deep);
      const changes = (count: number) =>
        keys(Object.fromEntries(Array.from({ length: count }, (_, n) => [`k${n}`, 'x'])));
      const { multi } = deep;
      const sent = new Error('sent');
      deep.multi = () => Promise.reject(sent);
      let [fits, refused] = [1, 10_000];
      while (refused - fits > 1) {
        const count = Math.floor((fits + refused) / 2);
        const error: unknown = await config.publish(changes(count)).catch((reason: unknown) => reason);
        if (error === sent) fits = count;
        else refused = count;
        if (error !== sent)
          expect(`${error}`).toMatch(/changes: expected at most 1000000 bytes in one revision/);
      }
      deep.multi = multi;
      await config.publish(changes(fits), { timeoutMs: 20_000 });
      expect((await config.read()).properties.size).toBe(fits);
      expect(fits).toBeGreaterThan(2_000);
    } finally {
      await deep.close();
    }
  });
});

describe('overrides for some nodes', () => {
  it('are a separate context, with its own history', async () => {
    const client = await scene.open();
    const canary = publisher(client, { nodes: '0-3' });
    await publisher(client).publish(keys({ a: '1' }));
    expect(await canary.publish(keys({ a: 'canary', b: 'canary' }), { expect: 0 })).toMatchObject({
      revision: 1,
    });
    expect(await treeAt(client)).toMatchObject({
      '/config/shop,prod/a': '1',
      '/config/shop,prod@nodes=0-3/a': 'canary',
    });
    await canary.publish(keys({ a: 'other' }));
    await canary.rollback(1);
    expect(canary.context).toBe('shop,prod@nodes=0-3');
    expect(await canary.history()).toHaveLength(3);
    expect((await canary.read()).properties.get('a')).toBe('canary');
    expect(await publisher(client).history()).toHaveLength(1);
    expect(() => publisher(client, { nodes: '7-3' })).toThrow(ConfigError);
  });
});
