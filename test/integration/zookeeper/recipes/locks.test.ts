import { setTimeout as sleep } from 'node:timers/promises';
import { describe, expect, it } from 'vitest';
import { ConfigError, WaitTimeoutError } from '../../../../src/core/base/errors.js';
import { LockLostError } from '../../../../src/core/lease/model/lock-lost.js';
import type { ZooKeeper } from '../../../../src/zookeeper/client/zookeeper.js';
import { elect, participants, watchLeader } from '../../../../src/zookeeper/recipes/elect.js';
import { lock } from '../../../../src/zookeeper/recipes/lock.js';
import { readLock, writeLock } from '../../../../src/zookeeper/recipes/read-write-lock.js';
import { semaphore } from '../../../../src/zookeeper/recipes/semaphore.js';
import { expire, loseReply, recipeScene } from './recipe-scene.js';

const PATH = '/locks/report';
const scene = recipeScene();

const children = async (zookeeper: ZooKeeper, path = PATH) =>
  [...((await zookeeper.children(path)) ?? [])].sort();
/** Until that many stand under the path: for what stays so until the test goes on. */
const standing = (zookeeper: ZooKeeper, count: number, path = PATH) =>
  expect.poll(() => children(zookeeper, path)).toHaveLength(count);

describe('a lock', () => {
  it("is Curator's znode, with a token that grows from holder to holder", async () => {
    const client = await scene.open();
    const first = await lock(client, PATH, { data: '10.0.0.1' }).acquire();
    expect(first.path).toMatch(
      /^\/locks\/report\/_c_[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}-lock-0000000000$/,
    );
    const znode = await client.read(first.path);
    expect(znode?.data.toString()).toBe('10.0.0.1');
    expect(znode?.stat).toMatchObject({ createdZxid: first.token, owner: expect.any(String) });
    expect(first.isValid()).toBe(true);
    await first.release();
    expect(first.isValid()).toBe(false);
    expect(await children(client)).toEqual([]);
    await using second = await lock(client, PATH).acquire();
    expect(second.token).toBeGreaterThan(first.token);
  });

  it('is had by one at a time, first come, first served', async () => {
    const clients = await Promise.all(Array.from({ length: 4 }, () => scene.open()));
    const observer: ZooKeeper = await scene.open();
    const gate = await lock(observer, PATH).acquire();
    const order: number[] = [];
    let holders = 0;
    const stand = async (client: ZooKeeper, turn: number) => {
      await using _held = await lock(client, PATH).acquire();
      holders += 1;
      expect(holders).toBe(1);
      order.push(turn);
      await sleep(5);
      holders -= 1;
    };
    const work: Promise<void>[] = [];
    for (let turn = 0; turn < 8; turn += 1) {
      work.push(stand(clients[turn % 4] ?? observer, turn));
      await standing(observer, turn + 2);
    }
    await gate.release();
    await Promise.all(work);
    expect(order).toEqual(Array.from({ length: 8 }, (_, turn) => turn));
  });

  it('is not had within the time, and nothing of the attempt is left', async () => {
    const [holder, other] = [await scene.open(), await scene.open()];
    await using _held = await lock(holder, PATH).acquire();
    await expect(lock(other, PATH).acquire({ timeoutMs: 0 })).rejects.toThrow(WaitTimeoutError);
    await expect(lock(other, PATH).acquire({ timeoutMs: 200 })).rejects.toThrow(
      /could not be acquired within 200 ms/,
    );
    const reason = new Error('enough');
    await expect(lock(other, PATH).acquire({ signal: AbortSignal.abort(reason) })).rejects.toBe(reason);
    await standing(holder, 1);
  });

  it('is not re-entrant, and says so', async () => {
    const mutex = lock(await scene.open(), PATH);
    const held = await mutex.acquire();
    await expect(mutex.acquire()).rejects.toMatchObject({
      code: 'RECIPE_FAILED',
      fault: 'already-held',
      path: PATH,
    });
    await held.release();
    await (await mutex.acquire()).release();
  });

  it('is lost at once when its znode is deleted, and guards no write any more', async () => {
    const client = await scene.open();
    const held = await lock(client, PATH).acquire();
    await held.guard([{ type: 'create', path: '/work', data: '1', mode: 'persistent' }]);
    await client.remove(held.path);
    await expect.poll(() => held.signal.aborted).toBe(true);
    expect(held.signal.reason).toBeInstanceOf(LockLostError);
    expect(held.signal.reason).toMatchObject({ lock: PATH, token: held.token, reason: 'taken' });
    await expect(held.guard([{ type: 'set', path: '/work', data: '2' }])).rejects.toBe(held.signal.reason);
    expect((await client.read('/work'))?.data.toString()).toBe('1');
  });

  it('is lost with its session, and a waiting task rejoins the queue in the next session', async () => {
    const [holder, other] = [await scene.open(), await scene.open()];
    const held = await lock(holder, PATH).acquire();
    const waiting = lock(other, PATH).acquire();
    await standing(holder, 2);
    for (const client of [other, holder]) await expire(client);
    await expect.poll(() => held.isValid()).toBe(false);
    const won = await waiting;
    expect(won.token).toBeGreaterThan(held.token);
    await standing(other, 1);
    await won.release();
  });

  it('has the znode of a lost reply found, not a second one made', async () => {
    const { client, proxy } = await scene.openThroughProxy();
    const observer = await scene.open();
    await client.ensurePath(PATH);
    proxy.stall('to-client');
    const acquiring = lock(client, PATH).acquire();
    await standing(observer, 1);
    loseReply(proxy);
    await using held = await acquiring;
    expect(await children(observer)).toEqual([held.path.slice(PATH.length + 1)]);
  });

  it('has the znode of a lost reply deleted, when it was given up meanwhile', async () => {
    const { client, proxy } = await scene.openThroughProxy();
    const observer = await scene.open();
    await client.ensurePath(PATH);
    proxy.stall('to-client');
    const over = new AbortController();
    const acquiring = lock(client, PATH).acquire({ signal: over.signal });
    await standing(observer, 1);
    over.abort(new Error('enough'));
    await expect(acquiring).rejects.toThrow('enough');
    loseReply(proxy);
    await standing(observer, 0);
  });

  it('is given up before the session can have ended, where ZooKeeper cannot be reached; its znode goes when that comes back', async () => {
    const { client, proxy } = await scene.openThroughProxy({ sessionTimeoutMs: 8_000 });
    const observer = await scene.open();
    const held = await lock(client, PATH).acquire();
    const { sessionId } = client.state as { sessionId: string };
    const isLost = new Promise((resolve) => held.signal.addEventListener('abort', resolve));
    proxy.stall('both');
    await isLost;
    expect(held.signal.reason).toMatchObject({ reason: 'unreachable' });
    // The session has not ended yet.
    expect((await observer.read(held.path))?.stat.owner).toBe(sessionId);
    proxy.heal();
    await standing(observer, 0);
  });

  it('rejects on a closed client, and when the client is closed while it waits', async () => {
    const [holder, other] = [await scene.open(), await scene.open()];
    await using _held = await lock(holder, PATH).acquire();
    const waiting = lock(other, PATH).acquire();
    await standing(holder, 2);
    await Promise.all([expect(waiting).rejects.toMatchObject({ fault: 'closed' }), other.close()]);
    await expect(lock(other, PATH).acquire()).rejects.toMatchObject({ fault: 'closed' });
  });

  it('names bad input: a relative path, the root, a negative time-out, znodes of another recipe', async () => {
    const client = await scene.open();
    expect(() => lock(client, 'locks')).toThrow(
      new ConfigError(
        'path',
        'locks',
        'an absolute path of ZooKeeper, such as /locks/report (a path begins with "/")',
      ),
    );
    expect(() => lock(client, '/')).toThrow(/it is the root/);
    await expect(lock(client, PATH).acquire({ timeoutMs: -1 })).rejects.toThrow(
      /timeoutMs: expected a number of milliseconds of at least 0/,
    );
  });

  it.each([
    ['lock', PATH, lock],
    ['readLock', PATH, readLock],
    ['writeLock', PATH, writeLock],
    [
      'semaphore',
      `${PATH}/leases`,
      (client: ZooKeeper, path: string) => semaphore(client, path, { leases: 1 }),
    ],
  ] as const)('is refused among znodes of another recipe: %s', async (_name, folder, recipe) => {
    const client = await scene.open();
    await client.createWithParents(`${folder}/qn-0000000001`, '', 'persistent');
    await expect(recipe(client, PATH).acquire()).rejects.toMatchObject({
      fault: 'foreign-znode',
      path: folder,
    });
    await standing(client, 1, folder);
  });

  it('keeps its place in the queue when its connection breaks while it waits', async () => {
    const { client, proxy } = await scene.openThroughProxy();
    const other = await scene.open();
    const held = await lock(other, PATH).acquire();
    const waiting = lock(client, PATH).acquire();
    await standing(other, 2);
    const place = (await children(other)).find((name) => !held.path.endsWith(name));
    const isBroken = new Promise<void>((resolve) =>
      client.onState(({ status }) => status !== 'connected' && resolve()),
    );
    proxy.reset();
    await isBroken;
    const later = lock(other, PATH).acquire();
    await standing(other, 3);
    await held.release();
    await using won = await waiting;
    expect(won.path).toBe(`${PATH}/${place}`);
    await won.release();
    await (await later).release();
  });

  it('is lost, and made again by a waiting task, when the whole chroot is removed', async () => {
    const [holder, other] = [await scene.open(), await scene.open()];
    const held = await lock(holder, PATH).acquire();
    const waiting = lock(other, PATH).acquire();
    await standing(holder, 2);
    const paths = (await children(holder)).map((name) => `${PATH}/${name}`);
    await holder.multi([...paths, PATH, '/locks', '/'].map((path) => ({ type: 'remove', path })));
    await expect.poll(() => held.signal.aborted).toBe(true);
    await using won = await waiting;
    expect(await children(other)).toEqual([won.path.slice(PATH.length + 1)]);
  });

  it('names a path that an ephemeral znode has taken', async () => {
    const client = await scene.open();
    await client.createWithParents(PATH, '', 'ephemeral');
    await expect(lock(client, PATH).acquire()).rejects.toMatchObject({
      code: 'ZOOKEEPER_FAILED',
      fault: 'no-children-for-ephemerals',
    });
  });

  it('says that access is denied, to one that may make znodes but not read the one before', async () => {
    const [owner, other] = [await scene.open({ auth: 'digest:me:secret' }), await scene.open()];
    await owner.createWithParents('/mine/report', '', 'persistent');
    await expect(lock(other, '/mine/report').acquire()).rejects.toMatchObject({
      code: 'ZOOKEEPER_FAILED',
      fault: 'no-auth',
    });
  });
});

describe('a read/write lock', () => {
  it('is shared by readers, excludes writers, and holds no writer up by later readers', async () => {
    const client = await scene.open();
    const [one, two] = await Promise.all([
      readLock(client, PATH).acquire(),
      readLock(client, PATH).acquire(),
    ]);
    const writer = writeLock(client, PATH).acquire();
    await standing(client, 3);
    const late = readLock(client, PATH).acquire();
    await standing(client, 4);
    const order: string[] = [];
    void writer.then(() => order.push('writer'));
    void late.then(() => order.push('reader'));
    await one.release();
    await sleep(50);
    expect(order).toEqual([]);
    await two.release();
    const held = await writer;
    await sleep(50);
    expect(order).toEqual(['writer']);
    await held.release();
    await (await late).release();
  });

  it('is not kept from a reader that waits by a writer that comes later', async () => {
    const client = await scene.open();
    const first = await writeLock(client, PATH).acquire();
    const reader = readLock(client, PATH).acquire();
    await standing(client, 2);
    const writer = writeLock(client, PATH).acquire();
    await standing(client, 3);
    await first.release();
    await (await reader).release();
    await (await writer).release();
  });

  it('lets a writer become a reader without letting another writer in between', async () => {
    const client = await scene.open();
    const held = await writeLock(client, PATH).acquire();
    const number = held.path.slice(-10);
    const writer = writeLock(client, PATH).acquire();
    await standing(client, 2);
    await held.downgrade();
    expect(held.path).toMatch(new RegExp(`-__READ__${number}$`));
    expect(held.isValid()).toBe(true);
    expect((await children(client)).map((name) => name.slice(-18))).toContain(`__READ__${number}`);
    await expect(writeLock(client, PATH).acquire({ timeoutMs: 0 })).rejects.toThrow(WaitTimeoutError);
    await held.guard([{ type: 'create', path: '/work', data: '', mode: 'persistent' }]);
    expect(held.signal.aborted).toBe(false);
    await held.release();
    await (await writer).release();
    await standing(client, 0);
  });
});

describe('a semaphore', () => {
  it('is had by as many as it has leases, and by the next when one is given back', async () => {
    const client = await scene.open();
    const one = () => semaphore(client, PATH, { leases: 2 });
    const [first, second] = [await one().acquire(), await one().acquire()];
    await expect(one().acquire({ timeoutMs: 0 })).rejects.toThrow(WaitTimeoutError);
    const third = one().acquire();
    await standing(client, 3, `${PATH}/leases`);
    await first.release();
    await Promise.all([third.then((held) => held.release()), second.release()]);
    await standing(client, 0, `${PATH}/leases`);
    await standing(client, 0, `${PATH}/locks`);
  });

  it('wants one lease at the least', async () => {
    const client = await scene.open();
    expect(() => semaphore(client, PATH, { leases: 0 })).toThrow(
      'leases: expected a whole number from 1 to 1000000, got 0',
    );
  });
});

describe('an election', () => {
  it('has one leader, notifies observers of each, and ends with its signal', async () => {
    const client = await scene.open();
    const reported: (string | undefined)[] = [];
    const watch = watchLeader(client, PATH, (leader) => reported.push(leader?.id));
    await watch.first;
    const over = new AbortController();
    const terms: { readonly id: string; readonly token: bigint; end(): void }[] = [];
    const run = async (id: string) => {
      for await (const { token } of elect(client, PATH, { id, signal: over.signal }))
        await new Promise<void>((end) => terms.push({ id, token, end }));
    };
    const running = [run('a')];
    await standing(client, 1);
    running.push(run('b'));
    for (const [count, leader] of ['a', 'b', 'a', 'b'].entries()) {
      // Both stand, the second one behind the first, until its term is ended here.
      await standing(client, 2);
      await expect.poll(() => reported.at(-1)).toBe(leader);
      await expect.poll(() => terms.map(({ id }) => id)).toEqual(['a', 'b', 'a', 'b'].slice(0, count + 1));
      expect((await participants(client, PATH)).map(({ id, isLeader }) => [id, isLeader])).toEqual([
        [leader, true],
        [leader === 'a' ? 'b' : 'a', false],
      ]);
      if (count === 3) over.abort();
      terms.at(-1)?.end();
    }
    await Promise.all(running);
    const tokens = terms.map(({ token }) => token);
    expect(tokens).toEqual([...new Set(tokens)].sort((a, b) => (a < b ? -1 : 1)));
    await standing(client, 0);
    await expect.poll(() => reported.at(-1)).toBeUndefined();
    expect(reported.slice(0, 5)).toEqual([undefined, 'a', 'b', 'a', 'b']);
    watch.close();
  });
});
