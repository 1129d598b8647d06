import { randomUUID } from 'node:crypto';
import { setTimeout as sleep } from 'node:timers/promises';
import { describe, expect, it } from 'vitest';
import { WaitTimeoutError } from '../../../../src/core/base/errors.js';
import type { ZooKeeper } from '../../../../src/zookeeper/client/zookeeper.js';
import { type DoubleBarrier, doubleBarrier } from '../../../../src/zookeeper/recipes/double-barrier.js';
import { lock } from '../../../../src/zookeeper/recipes/lock.js';
import { beforeFirst } from './before-calls.js';
import { expire, loseReply, recipeScene, waitingCalls } from './recipe-scene.js';

const PATH = '/barriers/batch';
const scene = recipeScene();

const children = async (zookeeper: ZooKeeper) => [...((await zookeeper.children(PATH)) ?? [])].sort();
const group = (client: ZooKeeper, members: number) =>
  Array.from({ length: members }, () => doubleBarrier(client, PATH, { members }));

describe('a double barrier', () => {
  it("is Curator's tree: members by UUID, and `ready` while they are in", async () => {
    const client = await scene.open();
    const [first, second] = group(client, 2) as [DoubleBarrier, DoubleBarrier];
    const entering = first.enter();
    await expect.poll(() => children(client)).toHaveLength(1);
    await waitingCalls(client, 1);
    const [own = ''] = await children(client);
    expect(own).toMatch(/^[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/);
    expect((await client.read(`${PATH}/${own}`))?.stat.owner).toBeDefined();
    await Promise.all([entering, second.enter()]);
    expect(await children(client)).toHaveLength(3);
    expect((await client.read(`${PATH}/ready`))?.stat.owner).toBeUndefined();
    const leaving = first.leave();
    await waitingCalls(client, 1);
    await Promise.all([leaving, second.leave()]);
    expect(await children(client)).toEqual([]);
    expect(client.openWatches).toBe(0);
  });

  it('has all of its members begin together and end together, round after round', async () => {
    const clients = await Promise.all(Array.from({ length: 5 }, () => scene.open()));
    let [entered, left] = [0, 0];
    const rounds = 5;
    await Promise.all(
      clients.map(async (client) => {
        const member = doubleBarrier(client, PATH, { members: 5 });
        for (let round = 1; round <= rounds; round += 1) {
          entered += 1;
          await member.enter();
          expect(entered).toBe(round * 5);
          await sleep(Math.random() * 5);
          left += 1;
          await member.leave();
          expect(left).toBe(round * 5);
        }
      }),
    );
    const [client] = clients as [(typeof clients)[0]];
    await expect.poll(() => children(client)).toEqual([]);
  });

  it('is not opened to a single member by a `ready` that a crash left behind', async () => {
    const client = await scene.open();
    await client.createWithParents(`${PATH}/ready`, '', 'persistent');
    const [first, second] = group(client, 2) as [DoubleBarrier, DoubleBarrier];
    const entering = first.enter();
    await expect.poll(() => children(client)).toHaveLength(2);
    await waitingCalls(client, 1);
    await Promise.all([entering, second.enter()]);
    await Promise.all([first.leave(), second.leave()]);
    expect(await children(client)).toEqual([]);
  });

  it('has one that comes while the others leave wait for their end, and for the next round', async () => {
    const client = await scene.open();
    const [a, b, c, d] = group(client, 4) as [DoubleBarrier, DoubleBarrier, DoubleBarrier, DoubleBarrier];
    await Promise.all([a.enter(), b.enter(), c.enter(), d.enter()]);
    const leaving = [a.leave(), b.leave(), c.leave()];
    // The one with the lowest name stands until the end.
    await expect.poll(async () => (await children(client)).length).toBeLessThanOrEqual(3);
    const another = doubleBarrier(client, PATH, { members: 4 });
    const early = another.enter();
    await waitingCalls(client, 4);
    await Promise.all([...leaving, d.leave()]);
    await waitingCalls(client, 1);
    await Promise.all([early, a.enter(), b.enter(), c.enter()]);
  });

  it('lets one take the place of a member that crashed, so that they are enough', async () => {
    const [client, crashing] = [await scene.open(), await scene.open()];
    const [a, b] = group(client, 2) as [DoubleBarrier, DoubleBarrier];
    await Promise.all([a.enter(), doubleBarrier(crashing, PATH, { members: 2 }).enter()]);
    await crashing.close();
    await b.enter();
    await Promise.all([a.leave(), b.leave()]);
  });

  it('is entered together with a member in Java, which makes `ready` and takes it away', async () => {
    const [client, java] = [await scene.open(), await scene.open()];
    const member = doubleBarrier(client, PATH, { members: 2 });
    const entering = member.enter();
    await expect.poll(() => children(client)).toHaveLength(1);
    // With the other member in sight it would make `ready` itself.
    await waitingCalls(client, 1);
    const own = `${PATH}/${randomUUID()}`;
    await java.create(own, '127.0.0.1', 'ephemeral');
    await java.create(`${PATH}/ready`, '127.0.0.1', 'persistent');
    await entering;
    const leaving = member.leave();
    await waitingCalls(client, 1);
    await java.remove(own);
    await java.remove(`${PATH}/ready`);
    await leaving;
    expect(await children(client)).toEqual([]);
  });

  it('leaves nothing behind where too few enter in time, and can be entered again', async () => {
    const client = await scene.open();
    const [first, second] = group(client, 2) as [DoubleBarrier, DoubleBarrier];
    await expect(first.enter({ timeoutMs: 0 })).rejects.toThrow(WaitTimeoutError);
    await expect(first.enter({ timeoutMs: 100 })).rejects.toThrow(
      /was not entered by 2 members within 100 ms/,
    );
    const reason = new Error('enough');
    const over = new AbortController();
    const entering = first.enter({ signal: over.signal });
    over.abort(reason);
    await expect(entering).rejects.toBe(reason);
    await expect.poll(() => children(client)).toEqual([]);
    await Promise.all([first.enter(), second.enter()]);
    await expect(first.leave({ timeoutMs: 100 })).rejects.toThrow(
      /was not left by all members within 100 ms/,
    );
    await second.leave();
  });

  it('is entered again in the next session; leaving after the session has ended is an error', async () => {
    const [client, other] = [await scene.open(), await scene.open()];
    const [mine, theirs] = [client, other].map((each) => doubleBarrier(each, PATH, { members: 2 })) as [
      DoubleBarrier,
      DoubleBarrier,
    ];
    const entering = mine.enter();
    await expect.poll(() => children(other)).toHaveLength(1);
    await expire(client);
    await Promise.all([entering, theirs.enter()]);
    await expire(client);
    await expect(mine.leave()).rejects.toMatchObject({
      code: 'RECIPE_FAILED',
      fault: 'not-held',
      path: PATH,
    });
    await theirs.leave();
  });

  it('has its znode found where the reply to its making is lost', async () => {
    const { client, proxy } = await scene.openThroughProxy();
    const other = await scene.open();
    await other.ensurePath(PATH);
    const losing = beforeFirst(client, 'createWithParents', () => proxy.stall('to-client'));
    const entering = doubleBarrier(losing, PATH, { members: 2 }).enter();
    await expect.poll(() => children(other)).toHaveLength(1);
    loseReply(proxy);
    const member = doubleBarrier(other, PATH, { members: 2 });
    await Promise.all([entering, member.enter()]);
    expect(await children(other)).toHaveLength(3);
  });

  it('is left without the members that came after it had opened', async () => {
    const [client, other] = await Promise.all([scene.open(), scene.open()]);
    const members = group(client, 2);
    await Promise.all(members.map((member) => member.enter()));
    const later = `${PATH}/${randomUUID()}`;
    await other.create(later, '', 'ephemeral');
    await Promise.all(members.map((member) => member.leave({ timeoutMs: 10_000 })));
    expect(await children(client)).toEqual([later.slice(PATH.length + 1), 'ready'].sort());
  });

  it('takes away the `ready` of its own round only', async () => {
    const client = await scene.open();
    const ready = `${PATH}/ready`;
    const openAgain = async () => {
      // After leave() has read it.
      await client.read(ready);
      await client.setData(ready, '', 0);
    };
    const alone = doubleBarrier(beforeFirst(client, 'multi', openAgain), PATH, { members: 1 });
    await alone.enter();
    await alone.leave();
    await expect.poll(() => children(client)).toEqual(['ready']);
  });

  it('knows when its own znode was deleted that the others have not waited for it', async () => {
    const client = await scene.open();
    const alone = doubleBarrier(client, PATH, { members: 1 });
    await alone.enter();
    const [own] = (await children(client)).filter((name) => name !== 'ready');
    await client.remove(`${PATH}/${own}`);
    await expect(alone.leave()).rejects.toMatchObject({ fault: 'not-held' });
  });

  it('is refused on the path of another recipe', async () => {
    const client = await scene.open();
    await using _held = await lock(client, PATH).acquire();
    await expect(doubleBarrier(client, PATH, { members: 2 }).enter()).rejects.toMatchObject({
      fault: 'foreign-znode',
      message: expect.stringMatching(
        /has a child ".*-lock-0000000000", which is not of this recipe: expected ready and UUIDs/,
      ),
    });
    expect(await children(client)).toHaveLength(1);
  });

  it('names bad input and misuse', async () => {
    const client = await scene.open();
    for (const members of [0, -1, 1.5])
      expect(() => doubleBarrier(client, PATH, { members })).toThrow(
        /members: expected a whole number from 1 to/,
      );
    const alone = doubleBarrier(client, PATH, { members: 1 });
    await expect(alone.leave()).rejects.toMatchObject({ fault: 'not-held' });
    await alone.enter();
    await expect(alone.enter()).rejects.toMatchObject({ fault: 'already-held' });
    await alone.leave();
    await client.close();
    await expect(alone.enter()).rejects.toMatchObject({ fault: 'closed' });
  });
});
