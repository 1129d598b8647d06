import { describe, expect, it } from 'vitest';
import { counter } from '../../../../src/zookeeper/recipes/counter.js';
import { lock } from '../../../../src/zookeeper/recipes/lock.js';
import { beforeFirst } from './before-calls.js';
import { loseNext, loseReply, recipeScene } from './recipe-scene.js';

const PATH = '/counters/orders';
const GREATEST = 2n ** 63n - 1n;
const scene = recipeScene();

describe('a counter', () => {
  it('begins at 0, and is stored as 8 bytes', async () => {
    const client = await scene.open();
    const orders = counter(client, PATH);
    expect(await orders.get()).toBe(0n);
    expect(await client.read(PATH)).toBeUndefined();
    expect(await orders.add(5)).toBe(5n);
    expect((await client.read(PATH))?.data.toString('hex')).toBe('0000000000000005');
    expect(await orders.add(-10n)).toBe(-5n);
    expect((await client.read(PATH))?.data.toString('hex')).toBe('fffffffffffffffb');
    await orders.set(GREATEST);
    expect(await orders.get()).toBe(GREATEST);
  });

  it('loses no addition of five clients that add at once', async () => {
    const clients = await Promise.all(Array.from({ length: 5 }, () => scene.open()));
    const seen = await Promise.all(
      clients.map(async (client) => {
        const values: bigint[] = [];
        for (let n = 0; n < 40; n += 1)
          values.push(await counter(client, PATH).add(1, { timeoutMs: 60_000 }));
        return values;
      }),
    );
    expect(new Set(seen.flat()).size).toBe(200);
    const [client] = clients as [(typeof clients)[0]];
    expect(await counter(client, PATH).get()).toBe(200n);
    expect(await client.children(PATH)).toEqual([]);
  });

  it('is set where it is what was expected, and else not', async () => {
    const orders = counter(await scene.open(), PATH);
    expect(await orders.compareAndSet(1, 2)).toBe(false);
    expect(await orders.compareAndSet(0, 2)).toBe(true);
    expect(await orders.compareAndSet(0, 3)).toBe(false);
    expect(await orders.compareAndSet(2n, 3n)).toBe(true);
    expect(await orders.get()).toBe(3n);
  });

  it('does not wrap: what does not fit is named, and changes nothing', async () => {
    const orders = counter(await scene.open(), PATH);
    await orders.set(GREATEST);
    await expect(orders.add(1)).rejects.toThrow(
      `amount: expected an amount that keeps ${PATH}, now ${GREATEST}, within 64 bits, got 1`,
    );
    expect(await orders.get()).toBe(GREATEST);
    await expect(orders.set(GREATEST + 1n)).rejects.toThrow(
      /value: expected a bigint of 64 bits, or a safe integer/,
    );
    await expect(orders.add(0.5)).rejects.toThrow(/amount: expected a bigint of 64 bits/);
  });

  it('says of other data that it is damaged; the empty znode that a lock leaves is 0', async () => {
    const client = await scene.open();
    await client.createWithParents(PATH, 'four', 'persistent');
    const orders = counter(client, PATH);
    const damaged = { code: 'RECIPE_FAILED', fault: 'damaged', path: PATH };
    await expect(orders.get()).rejects.toMatchObject(damaged);
    await expect(orders.add(1)).rejects.toMatchObject(damaged);
    await orders.set(1);
    expect(await orders.get()).toBe(1n);
    await (await lock(client, '/counters/other').acquire()).release();
    expect(await counter(client, '/counters/other').add(1)).toBe(1n);
  });

  it('is not changed twice where the reply is lost: that it may have been changed is said', async () => {
    const { client, proxy } = await scene.openThroughProxy();
    const observer = counter(await scene.open(), PATH);
    await observer.set(7);
    const adding = counter(
      beforeFirst(client, 'setData', () => proxy.stall('to-client')),
      PATH,
    ).add(1, { timeoutMs: 20_000 });
    await expect.poll(() => observer.get()).toBe(8n);
    loseReply(proxy);
    await expect(adding).rejects.toMatchObject({
      code: 'RECIPE_FAILED',
      fault: 'outcome-unknown',
      path: PATH,
    });
    expect(await observer.get()).toBe(8n);
  });

  it('is changed once where the request did not arrive, or another was first', async () => {
    const { client, proxy } = await scene.openThroughProxy();
    const observer = counter(await scene.open(), PATH);
    await observer.set(7);
    const losses: Promise<void>[] = [];
    const lost = beforeFirst(client, 'setData', () => void losses.push(loseNext(proxy, 'to-server')));
    expect(await counter(lost, PATH).add(1, { timeoutMs: 20_000 })).toBe(8n);
    const late = beforeFirst(client, 'setData', async () => {
      await observer.add(10);
      losses.push(loseNext(proxy, 'to-client'));
    });
    expect(await counter(late, PATH).add(1, { timeoutMs: 20_000 })).toBe(19n);
    expect(await observer.get()).toBe(19n);
    await Promise.all(losses);
  });

  it("is every user's, says where access is denied all the same, and that the client is closed", async () => {
    const [owner, other] = [await scene.open({ auth: 'digest:me:secret' }), await scene.open()];
    await counter(owner, PATH).add(1);
    expect(await counter(other, PATH).add(1)).toBe(2n);
    await owner.remove(PATH);
    await owner.create(PATH, Buffer.from('0000000000000001', 'hex'), 'persistent');
    await expect(counter(other, PATH).add(1)).rejects.toMatchObject({ fault: 'no-auth' });
    await other.close();
    await expect(counter(other, PATH).add(1)).rejects.toMatchObject({ fault: 'closed' });
  });
});
