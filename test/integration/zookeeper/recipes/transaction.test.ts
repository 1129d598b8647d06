import { setTimeout as sleep } from 'node:timers/promises';
import { describe, expect, inject, it } from 'vitest';
import { ConfigError, WaitTimeoutError } from '../../../../src/core/base/errors.js';
import type { ZooKeeper } from '../../../../src/zookeeper/client/zookeeper.js';
import { type TransactionOutcome, transaction } from '../../../../src/zookeeper/recipes/index.js';
import { VirtualClock } from '../../../support/virtual-clock.js';
import { expireSession } from '../../../support/zookeeper.js';
import { expire, loseReply, recipeScene } from './recipe-scene.js';

const PATH = '/transactions/order-4711';
const SITES = ['stock', 'money', 'mail'];
const scene = recipeScene();

const yes = async (): Promise<TransactionOutcome> => 'commit';
const no = async (): Promise<TransactionOutcome> => 'abort';
const never = () => new Promise<never>(() => {});

const join = (client: ZooKeeper, site: string, vote: (data: Buffer) => Promise<TransactionOutcome> = yes) =>
  transaction(client, PATH).join({ site }, vote);
/** The client, with `hook` called before each of its calls, which may hold the call up. */
const intercepted = (
  client: ZooKeeper,
  hook: (method: string | symbol, path: unknown) => Promise<unknown> | undefined,
): ZooKeeper =>
  new Proxy(client, {
    get(target, method) {
      const value: unknown = Reflect.get(target, method, target);
      if (typeof value !== 'function') return value;
      return (...args: unknown[]) => {
        const held = hook(method, args[0]);
        return held === undefined ? value.apply(target, args) : held.then(() => value.apply(target, args));
      };
    },
  });
/** Until that many votes stand. */
const votes = (client: ZooKeeper, count: number) =>
  expect
    .poll(async () => (await client.children(PATH))?.filter((name) => name.startsWith('vote-')).length)
    .toBe(count);

describe('a transaction', () => {
  it('is committed where all sites vote so, which get its data; once carried out it can be removed', async () => {
    const [client, other] = [await scene.open(), await scene.open()];
    const asked: string[] = [];
    const applied: TransactionOutcome[] = [];
    const sites = SITES.map((site) =>
      transaction(other, PATH).join(
        { site },
        async (data) => {
          asked.push(data.toString());
          return 'commit';
        },
        async (outcome) => void applied.push(outcome),
      ),
    );
    const tx = transaction(client, PATH, { data: '10.0.0.1' });
    expect(await tx.coordinate({ sites: SITES, data: 'ship it' })).toBe('commit');
    expect(await Promise.all(sites)).toEqual(['commit', 'commit', 'commit']);
    expect([asked, applied]).toEqual([Array(3).fill('ship it'), Array(3).fill('commit')]);
    await expect.poll(() => client.children(PATH)).toHaveLength(2);
    expect((await client.read(`${PATH}/decision`))?.data.toString()).toBe('commit');
    // It stays so for any client that asks again.
    expect(await tx.coordinate({ sites: [...SITES].reverse(), data: Buffer.from('ship it') })).toBe('commit');
    expect(await join(other, 'mail', no)).toBe('commit');
    await tx.forget();
    expect(await client.children('/transactions')).toEqual([]);
    await tx.forget();
  });

  it('is aborted as soon as one site votes so', async () => {
    const client = await scene.open();
    const outcome = transaction(client, PATH).coordinate({ sites: SITES });
    const sites = [join(client, 'stock'), join(client, 'money', no)];
    expect(await Promise.all([outcome, ...sites])).toEqual(['abort', 'abort', 'abort']);
    // A site that comes later is not even asked.
    expect(await join(client, 'mail', never)).toBe('abort');
  });

  it('is aborted where a site does not vote in time, on whose late vote nothing depends', async () => {
    const client = await scene.open();
    const clock = new VirtualClock();
    const outcome = transaction(client, PATH, { clock }).coordinate({ sites: SITES });
    let answer: ((vote: TransactionOutcome) => void) | undefined;
    const late = join(client, 'mail', () => new Promise((resolve) => (answer = resolve)));
    const inTime = [join(client, 'stock'), join(client, 'money')];
    await votes(client, 2);
    await expect.poll(() => answer).toBeDefined();
    await clock.advance(60_000);
    expect(await Promise.all([outcome, ...inTime])).toEqual(['abort', 'abort', 'abort']);
    answer?.('commit');
    expect(await late).toBe('abort');
  });

  it('is decided by a site whose own time is over, for all', async () => {
    const client = await scene.open();
    const clock = new VirtualClock();
    const outcome = transaction(client, PATH).coordinate({ sites: SITES });
    const site = transaction(client, PATH, { clock }).join({ site: 'stock', timeoutMs: 10_000 }, yes);
    await votes(client, 1);
    await clock.advance(10_000);
    expect(await Promise.all([site, outcome])).toEqual(['abort', 'abort']);
  });

  it("is aborted by the sites when the coordinator's session ends before all have voted; the coordinator learns it", async () => {
    const [client, other] = [await scene.open(), await scene.open()];
    const outcome = transaction(client, PATH).coordinate({ sites: SITES });
    const sites = [join(other, 'stock'), join(other, 'money')];
    await votes(other, 2);
    await expire(client);
    expect(await Promise.all([...sites, outcome])).toEqual(['abort', 'abort', 'abort']);
    expect(await join(other, 'mail')).toBe('abort');
  });

  it('is committed by the sites when the coordinator is gone once all have voted', async () => {
    const { client, proxy } = await scene.openThroughProxy();
    const other = await scene.open();
    void transaction(client, PATH)
      .coordinate({ sites: SITES })
      .catch(() => undefined);
    const sites = [join(other, 'stock'), join(other, 'money')];
    await votes(other, 2);
    // The process of the coordinator is gone: it learns nothing more, and ZooKeeper finds out when its
    // session ends.
    const { sessionId } = client.state as { sessionId: string };
    proxy.cut();
    sites.push(join(other, 'mail'));
    await votes(other, 3);
    await expireSession({ connect: inject('zookeeper').connect, sessionId });
    expect(await Promise.all(sites)).toEqual(['commit', 'commit', 'commit']);
  });

  it('keeps the decision of a coordinator that is gone after it', async () => {
    const [client, other] = [await scene.open(), await scene.open()];
    const outcome = transaction(client, PATH).coordinate({ sites: SITES });
    expect(
      await Promise.all([join(other, 'stock'), join(other, 'money'), join(other, 'mail'), outcome]),
    ).toEqual(Array(4).fill('commit'));
    await client.close();
    expect(await join(other, 'stock', no)).toBe('commit');
  });

  it('is reported to a site that died after its vote when it returns: the site is not asked again, and its vote counts once', async () => {
    const [client, dying, other] = [await scene.open(), await scene.open(), await scene.open()];
    const outcome = transaction(client, PATH).coordinate({ sites: SITES });
    const death = expect(join(dying, 'stock')).rejects.toMatchObject({ fault: 'closed' });
    await votes(other, 1);
    await Promise.all([death, dying.close()]);
    const back = join(other, 'stock', () => Promise.reject(new Error('asked again')));
    const money = join(other, 'money');
    await votes(other, 2);
    await sleep(50);
    expect((await client.children(PATH))?.includes('decision')).toBe(false);
    expect(await Promise.all([outcome, back, money, join(other, 'mail')])).toEqual(Array(4).fill('commit'));
  });

  it('counts the first vote of a site, where a second process of it votes otherwise', async () => {
    const [client, other] = [await scene.open(), await scene.open()];
    const outcome = transaction(client, PATH).coordinate({ sites: ['stock', 'money'] });
    const first: Promise<TransactionOutcome>[] = [];
    const second = join(other, 'stock', async () => {
      first.push(join(client, 'stock'));
      await votes(client, 1);
      return 'abort';
    });
    await votes(client, 1);
    await sleep(100);
    expect((await client.read(`${PATH}/vote-stock`))?.data.toString()).toBe('commit');
    expect(await Promise.all([outcome, ...first, second, join(client, 'money')])).toEqual(
      Array(4).fill('commit'),
    );
  });

  it('has the outcome that was written first, whatever a slower party was about to write', async () => {
    const [client, other] = [await scene.open(), await scene.open()];
    const slow = intercepted(client, (method, path) =>
      method === 'create' && path === `${PATH}/decision`
        ? other.create(`${PATH}/decision`, 'abort', 'persistent').catch(() => 0)
        : undefined,
    );
    const outcome = transaction(slow, PATH).coordinate({ sites: ['stock'] });
    expect(await Promise.all([join(other, 'stock'), outcome])).toEqual(['abort', 'abort']);
  });

  it('has no vote where the site fails as it is asked; it is asked again by the next call', async () => {
    const client = await scene.open();
    const outcome = transaction(client, PATH).coordinate({ sites: ['stock'] });
    for (const failure of [new Error('disk full'), new WaitTimeoutError('a lock of its own')])
      await expect(join(client, 'stock', () => Promise.reject(failure))).rejects.toBe(failure);
    await votes(client, 0);
    expect(await Promise.all([outcome, join(client, 'stock')])).toEqual(['commit', 'commit']);
  });

  it('is for sites of several users, and removed by any of them', async () => {
    const [client, other] = [
      await scene.open({ auth: 'digest:me:secret' }),
      await scene.open({ auth: 'digest:you:secret' }),
    ];
    const outcome = transaction(client, PATH).coordinate({ sites: ['stock', 'money'] });
    expect(await Promise.all([join(other, 'stock'), join(client, 'money'), outcome])).toEqual([
      'commit',
      'commit',
      'commit',
    ]);
    await transaction(other, PATH).forget();
    expect(await client.read(PATH)).toBeUndefined();
  });

  it('is not removed while a site has not carried it out; the site is notified again', async () => {
    const client = await scene.open();
    const tx = transaction(client, PATH);
    const outcome = tx.coordinate({ sites: ['stock'] });
    const failing = tx.join({ site: 'stock' }, yes, () => Promise.reject(new Error('disk full')));
    await expect(failing).rejects.toThrow('disk full');
    expect(await outcome).toBe('commit');
    await expect(tx.forget({ timeoutMs: 0 })).rejects.toThrow(`${PATH} could not be removed within 0 ms`);
    const applied: TransactionOutcome[] = [];
    expect(await tx.join({ site: 'stock' }, yes, async (found) => void applied.push(found))).toBe('commit');
    expect(applied).toEqual(['commit']);
    await tx.forget({ timeoutMs: 0 });
  });

  it('has one vote, asked for once, where the reply to it is lost', async () => {
    const { client, proxy } = await scene.openThroughProxy();
    const other = await scene.open();
    const outcome = transaction(other, PATH).coordinate({ sites: ['stock', 'money'] });
    let asked = 0;
    const site = join(client, 'stock', async () => {
      asked += 1;
      proxy.stall('to-client');
      return 'commit';
    });
    await votes(other, 1);
    loseReply(proxy);
    expect(await Promise.all([outcome, site, join(other, 'money')])).toEqual(['commit', 'commit', 'commit']);
    expect(asked).toBe(1);
  });

  it('is begun once and decided once where the replies to both are lost', async () => {
    const { client, proxy } = await scene.openThroughProxy();
    const other = await scene.open();
    const stalled: unknown[] = [];
    const stalling = intercepted(client, (method, path) => {
      if (
        stalled.includes(method) ||
        !(method === 'multi' || (method === 'create' && path === `${PATH}/decision`))
      )
        return;
      stalled.push(method);
      proxy.stall('to-client');
    });
    const outcome = transaction(stalling, PATH).coordinate({ sites: ['stock'] });
    await votes(other, 0);
    loseReply(proxy);
    expect(await join(other, 'stock')).toBe('commit');
    loseReply(proxy);
    expect(await outcome).toBe('commit');
    expect(stalled).toEqual(['multi', 'create']);
  });

  it('ends for all in the same way, no matter which process is killed when, in 8 rounds', async () => {
    for (let round = 0; round < 8; round += 1) {
      const path = `/rounds/${round}`;
      const outcomes: TransactionOutcome[] = [];
      /** Runs a party until it knows the outcome; the first process of it may be killed at any time. */
      const party = async (
        killAfterMs: number | undefined,
        run: (client: ZooKeeper) => Promise<TransactionOutcome>,
      ) => {
        for (let process = 0; ; process += 1) {
          const client = await scene.open();
          const death =
            process === 0 && killAfterMs !== undefined
              ? sleep(killAfterMs).then(() => client.close())
              : undefined;
          const outcome = await run(client).catch((error: unknown) => {
            expect(error).toMatchObject({ fault: 'closed' });
          });
          if (outcome !== undefined) outcomes.push(outcome);
          await (death ?? client.close());
          if (outcome !== undefined) return;
        }
      };
      const maybe = () => (Math.random() < 0.6 ? Math.random() * 60 : undefined);
      const refuses = Math.random() < 0.2 ? 'money' : undefined;
      await Promise.all([
        // None waits until the time is up, which comes after the end of this test.
        party(maybe(), (client) =>
          transaction(client, path).coordinate({ sites: SITES, timeoutMs: 600_000 }),
        ),
        ...SITES.map((site) =>
          party(maybe(), (client) =>
            transaction(client, path).join({ site }, async () => {
              await sleep(Math.random() * 20);
              return site === refuses ? 'abort' : 'commit';
            }),
          ),
        ),
      ]);
      expect(outcomes).toHaveLength(4);
      expect(new Set(outcomes).size, `round ${round}: ${outcomes}`).toBe(1);
    }
  });
});

describe('bad input of a transaction', () => {
  it('is named: no sites, one named twice, a name with a slash, no time-out, another transaction at the path, and a site that is not one of its sites', async () => {
    const client = await scene.open();
    const tx = transaction(client, PATH);
    const refused = async (made: Promise<unknown>, error: Error) => expect(made).rejects.toThrow(error);
    await refused(
      tx.coordinate({ sites: [] }),
      new ConfigError('sites', [], 'an array of at least one site'),
    );
    await refused(tx.coordinate({ sites: ['a', 'b', 'a'] }), new ConfigError('sites', 'a', 'each site once'));
    const name = 'a name without "/" and control characters, other than "." and ".."';
    await refused(tx.coordinate({ sites: ['a/b'] }), new ConfigError('sites', 'a/b', name));
    await refused(tx.join({ site: 'a/b' }, yes), new ConfigError('site', 'a/b', name));
    const timeout = new ConfigError('timeoutMs', -1, 'a number of milliseconds of at least 0');
    await refused(tx.coordinate({ sites: ['a'], timeoutMs: -1 }), timeout);
    await refused(tx.join({ site: 'a', timeoutMs: -1 }, yes), timeout);
    expect(() => transaction(client, 'relative')).toThrow(ConfigError);
    const outcome = tx.coordinate({ sites: ['a', 'b'], data: 'one' });
    await votes(client, 0);
    await refused(
      tx.join({ site: 'c' }, yes),
      new ConfigError('site', 'c', `one of the sites of ${PATH}: a, b`),
    );
    await expect(tx.coordinate({ sites: ['a', 'b'], data: 'two' })).rejects.toMatchObject({
      fault: 'foreign-znode',
      path: PATH,
    });
    await expect(tx.coordinate({ sites: ['a'], data: 'one' })).rejects.toMatchObject({
      fault: 'foreign-znode',
    });
    await refused(
      tx.join({ site: 'a' }, async () => 'maybe' as 'commit'),
      new ConfigError('vote', 'maybe', '"commit" or "abort"'),
    );
    expect(await Promise.all([outcome, tx.join({ site: 'a' }, yes), tx.join({ site: 'b' }, yes)])).toEqual(
      Array(3).fill('commit'),
    );
  });
});

describe('a transaction that cannot go on', () => {
  it('says that none was begun in time, and obeys its signal', async () => {
    const client = await scene.open();
    await expect(transaction(client, PATH).join({ site: 'stock', timeoutMs: 100 }, yes)).rejects.toThrow(
      WaitTimeoutError,
    );
    const over = new AbortController();
    const joining = transaction(client, PATH).join({ site: 'stock', signal: over.signal }, yes);
    over.abort(new Error('enough'));
    await expect(joining).rejects.toThrow('enough');
  });

  it('is aborted by the sites when the coordinator gives it up', async () => {
    const client = await scene.open();
    const over = new AbortController();
    const outcome = transaction(client, PATH).coordinate({ sites: SITES, signal: over.signal });
    const site = join(client, 'stock');
    await votes(client, 1);
    over.abort(new Error('enough'));
    await expect(outcome).rejects.toThrow('enough');
    expect(await site).toBe('abort');
  });

  it('reports znodes that are not its own, and words that it does not write', async () => {
    const client = await scene.open();
    await client.createWithParents(`${PATH}/_c_x-lock-0000000000`, '', 'persistent');
    for (const made of [
      join(client, 'stock'),
      transaction(client, PATH).coordinate({ sites: SITES }),
      transaction(client, PATH).forget(),
    ])
      await expect(made).rejects.toMatchObject({ code: 'RECIPE_FAILED', fault: 'foreign-znode', path: PATH });
    await client.remove(`${PATH}/_c_x-lock-0000000000`);
    await expect(join(client, 'stock')).rejects.toMatchObject({ fault: 'foreign-znode' });
    await client.remove(PATH);
    const outcome = transaction(client, PATH).coordinate({ sites: SITES });
    await votes(client, 0);
    await Promise.all([
      expect(outcome).rejects.toMatchObject({ fault: 'damaged', path: `${PATH}/vote-mail` }),
      client.create(`${PATH}/vote-mail`, 'perhaps', 'persistent'),
    ]);
  });

  it('says that it was removed behind its back: no new one is begun in its place', async () => {
    const client = await scene.open();
    const outcome = transaction(client, PATH).coordinate({ sites: SITES });
    const site = join(client, 'stock');
    await votes(client, 1);
    const [coordinator = ''] = ((await client.children(PATH)) ?? []).filter((name) =>
      name.startsWith('coordinator-'),
    );
    const paths = [`${PATH}/vote-stock`, `${PATH}/sites`, `${PATH}/${coordinator}`, PATH];
    await Promise.all([
      expect(outcome).rejects.toMatchObject({ fault: 'outcome-unknown', path: PATH }),
      expect(site).rejects.toMatchObject({ fault: 'outcome-unknown', path: PATH }),
      client.multi(paths.map((path) => ({ type: 'remove', path }))),
    ]);
    expect(await client.children('/transactions')).toEqual([]);
  });

  it('says that access is denied, that the client is closed, and that ZooKeeper stays away', async () => {
    const [owner, other] = [await scene.open({ auth: 'digest:me:secret' }), await scene.open()];
    await owner.createWithParents('/mine', '', 'persistent');
    await expect(transaction(other, '/mine/tx').coordinate({ sites: SITES })).rejects.toMatchObject({
      fault: 'no-auth',
    });
    const waiting = expect(join(other, 'stock')).rejects.toMatchObject({ fault: 'closed' });
    await expect.poll(() => other.openWatches).toBe(1);
    await Promise.all([waiting, other.close()]);
    await expect(join(other, 'stock')).rejects.toMatchObject({ fault: 'closed' });
    const { client, proxy } = await scene.openThroughProxy();
    proxy.stall('both');
    await expect(transaction(client, PATH).coordinate({ sites: SITES, timeoutMs: 10 })).rejects.toThrow(
      WaitTimeoutError,
    );
    // Or close() would wait a second for the servers.
    proxy.heal();
  });
});
