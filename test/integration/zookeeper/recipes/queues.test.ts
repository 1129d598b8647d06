import { describe, expect, it } from 'vitest';
import { WaitTimeoutError } from '../../../../src/core/base/errors.js';
import type { ZooKeeper } from '../../../../src/zookeeper/client/zookeeper.js';
import { queue } from '../../../../src/zookeeper/recipes/queue/queue.js';
import { beforeFirst } from './before-calls.js';
import { expire, loseNext, loseReply, recipeScene } from './recipe-scene.js';

const PATH = '/queues/mail';
const LOCKS = '/queues/mail-locks';
const SIMPLE = { format: 'simple' } as const;
const ONCE = { format: 'distributed' } as const;
const LOCKED = { format: 'distributed', lockPath: LOCKS } as const;
const scene = recipeScene();

const children = async (zookeeper: ZooKeeper, path = PATH) =>
  [...((await zookeeper.children(path)) ?? [])].sort();
const numbers = (count: number) => Array.from({ length: count }, (_, n) => `${n}`);

describe.each([
  ['a simple queue', SIMPLE, 'qn-', '6f6e65'],
  ['a distributed queue', ONCE, 'queue-', '0001000101000000036f6e6502'],
] as const)('%s', (_, format, prefix, bytes) => {
  it("holds Curator's znodes, and hands them out in order", async () => {
    const client = await scene.open();
    const mail = queue(client, PATH, format);
    await mail.put('one');
    await mail.putMany([Buffer.from('two'), 'three']);
    expect(await children(client)).toEqual([0, 1, 2].map((n) => `${prefix}000000000${n}`));
    const znode = await client.read(`${PATH}/${prefix}0000000000`);
    expect([znode?.data.toString('hex'), znode?.stat.owner]).toEqual([bytes, undefined]);
    expect([await mail.take(), await mail.take(), await mail.take()].map(String)).toEqual([
      'one',
      'two',
      'three',
    ]);
    expect(await children(client)).toEqual([]);
  });

  it('hands each item to one of five takers, in the order of each', async () => {
    const clients = await Promise.all(Array.from({ length: 5 }, () => scene.open()));
    const producer = queue(await scene.open(), PATH, format);
    const over = new AbortController();
    const had = clients.map((): number[] => []);
    const taking = clients.map(async (client, taker) => {
      for await (const item of queue(client, PATH, { ...format, signal: over.signal }))
        had[taker]?.push(Number(item.toString()));
    });
    for (let n = 0; n < 30; n += 5) await producer.putMany([n, n + 1, n + 2, n + 3, n + 4].map(String));
    await expect.poll(() => had.flat()).toHaveLength(30);
    expect(await children(clients[0] as ZooKeeper)).toEqual([]);
    over.abort();
    await Promise.all(taking);
    for (const own of had) expect(own).toEqual([...own].sort((a, b) => a - b));
    expect(had.flat().sort((a, b) => a - b)).toEqual(numbers(30).map(Number));
    expect(clients.map(({ openWatches }) => openWatches)).toEqual([0, 0, 0, 0, 0]);
  });

  it('has takers wait, no longer than allowed, and leaves foreign znodes alone', async () => {
    const client = await scene.open();
    const mail = queue(client, PATH, format);
    await expect(mail.take({ timeoutMs: 0 })).rejects.toThrow(WaitTimeoutError);
    await client.createWithParents(`${PATH}/other`, 'x', 'persistent');
    await expect(mail.take({ timeoutMs: 100 })).rejects.toThrow(/\/queues\/mail had no item within 100 ms/);
    const reason = new Error('enough');
    const over = new AbortController();
    const taking = mail.take({ signal: over.signal });
    over.abort(reason);
    await expect(taking).rejects.toBe(reason);
    const waiting = mail.take();
    await mail.put('late');
    expect((await waiting).toString()).toBe('late');
    expect(await children(client)).toEqual(['other']);
    expect(client.openWatches).toBe(0);
  });

  it('names an item over the limit of the servers', async () => {
    const mail = queue(await scene.open(), PATH, format);
    await expect(mail.put(Buffer.alloc(1_000_001))).rejects.toThrow(
      /item: expected at most 1000000 bytes as they are stored, the servers' limit, got 10000/,
    );
    await mail.put(Buffer.alloc(999_000));
    expect(await mail.take()).toHaveLength(999_000);
  });

  it('says where a reply was lost that an item may have been put; it is not put twice', async () => {
    const { client, proxy } = await scene.openThroughProxy();
    const observer = await scene.open();
    await observer.ensurePath(PATH);
    const losing = beforeFirst(client, 'multi', () => proxy.stall('to-client'));
    const putting = queue(losing, PATH, format).put('one');
    await expect.poll(() => children(observer)).toHaveLength(1);
    loseReply(proxy);
    await expect(putting).rejects.toMatchObject({
      code: 'RECIPE_FAILED',
      fault: 'outcome-unknown',
      path: PATH,
    });
    expect(await children(observer)).toHaveLength(1);
  });

  it('says where a reply was lost that an item may have been taken; a request that was lost is made again', async () => {
    const { client, proxy } = await scene.openThroughProxy();
    const observer = await scene.open();
    const producer = queue(observer, PATH, format);
    await producer.putMany(['one', 'two']);
    const losing = beforeFirst(client, 'remove', () => proxy.stall('to-client'));
    const taking = queue(losing, PATH, format).take();
    await expect.poll(() => children(observer)).toHaveLength(1);
    loseReply(proxy);
    await expect(taking).rejects.toMatchObject({ fault: 'outcome-unknown' });
    const losses: Promise<void>[] = [];
    const late = beforeFirst(client, 'remove', () => void losses.push(loseNext(proxy, 'to-server')));
    expect((await queue(late, PATH, format).take()).toString()).toBe('two');
    await Promise.all(losses);
  });

  it('says that access is denied, and that the client is closed', async () => {
    const [owner, other] = [await scene.open({ auth: 'digest:me:secret' }), await scene.open()];
    await owner.createWithParents(`${PATH}/${prefix}0000000000`, Buffer.from(bytes, 'hex'), 'persistent');
    await owner.create('/mine', '', 'persistent');
    await expect(queue(other, '/mine', format).put('x')).rejects.toMatchObject({ fault: 'no-auth' });
    const waiting = queue(other, '/mine', format).take();
    await expect.poll(() => other.openWatches).toBe(1);
    await Promise.all([expect(waiting).rejects.toMatchObject({ fault: 'closed' }), other.close()]);
    await expect(queue(other, PATH, format).put('x')).rejects.toMatchObject({ fault: 'closed' });
  });
});

describe('a distributed queue', () => {
  const THREE = Buffer.from('0001000101000000036f6e65010000000374776f0100000005746872656502', 'hex');

  it('leaves to others what is left of a znode with several items, at the end of an iteration or of the taker', async () => {
    const client = await scene.open();
    const others = queue(client, PATH, ONCE);
    await client.createWithParents(`${PATH}/queue-`, THREE, 'persistent-sequential');
    for await (const item of queue(client, PATH, ONCE)) {
      expect(`${item}`).toBe('one');
      break;
    }
    expect([await others.take(), await others.take()].map(String)).toEqual(['two', 'three']);
    await client.create(`${PATH}/queue-`, THREE, 'persistent-sequential');
    {
      await using mail = queue(client, PATH, ONCE);
      expect(`${await mail.take()}`).toBe('one');
    }
    expect([await others.take(), await others.take()].map(String)).toEqual(['two', 'three']);
  });

  it('hands out one by one what a member in Java put into one znode', async () => {
    const client = await scene.open();
    await client.createWithParents(`${PATH}/queue-`, THREE, 'persistent-sequential');
    const mail = queue(client, PATH, ONCE);
    expect([await mail.take(), await mail.take(), await mail.take()].map(String)).toEqual([
      'one',
      'two',
      'three',
    ]);
    await client.createWithParents(`${PATH}/queue-`, THREE, 'persistent-sequential');
    const locked = queue(client, PATH, LOCKED);
    const [one, two, three] = [await locked.take(), await locked.take(), await locked.take()];
    await Promise.all([one.ack(), two.requeue()]);
    expect(await children(client)).toEqual(['queue-0000000001']);
    await three.ack();
    expect(await children(client)).toEqual(['queue-0000000002']);
    expect((await mail.take()).toString()).toBe('two');
  });

  it.each([
    ['at most once', ONCE],
    ['at least once', LOCKED],
  ] as const)('reports a damaged item, removes it, and goes on: %s', async (_, options) => {
    const client = await scene.open();
    for (const data of ['junk', 'more junk'])
      await client.createWithParents(`${PATH}/queue-`, data, 'persistent-sequential');
    await queue(client, PATH, ONCE).put('good');
    await expect(queue(client, PATH, options as typeof ONCE).take()).rejects.toMatchObject({
      fault: 'damaged',
      path: `${PATH}/queue-0000000000`,
    });
    const reported: string[] = [];
    const mail = queue(client, PATH, {
      ...(options as typeof ONCE),
      onDamaged: (error, data) => reported.push(`${error.path} ${data}`),
    });
    const item = await mail.take();
    expect(('data' in item ? (item as { data: Buffer }).data : item).toString()).toBe('good');
    expect(reported).toEqual([`${PATH}/queue-0000000001 more junk`]);
  });

  it('names bad input', async () => {
    const client = await scene.open();
    expect(() => queue(client, 'mail', ONCE)).toThrow(/path: expected an absolute path/);
    expect(() => queue(client, PATH, { format: 'distributed', lockPath: 'locks' })).toThrow(
      /path: expected an absolute path/,
    );
    expect(() => queue(client, PATH, { format: 'simple', lockPath: LOCKS })).toThrow(
      /lockPath: expected none for a simple queue/,
    );
    expect(() => queue(client, PATH, { format: 'fifo' as 'simple' })).toThrow(
      /format: expected 'simple' or 'distributed', got "fifo"/,
    );
  });
});

describe('a queue with a lock path', () => {
  it('locks an item until it is acknowledged', async () => {
    const [client, other] = [await scene.open(), await scene.open()];
    const mail = queue(client, PATH, LOCKED);
    await mail.putMany(['one', 'two']);
    const one = await mail.take();
    expect(one.data.toString()).toBe('one');
    expect(await children(client, LOCKS)).toEqual(['queue-0000000000']);
    expect((await client.read(`${LOCKS}/queue-0000000000`))?.stat.owner).toBeDefined();
    const two = await queue(other, PATH, LOCKED).take();
    expect(two.data.toString()).toBe('two');
    await expect(mail.take({ timeoutMs: 0 })).rejects.toThrow(WaitTimeoutError);
    await Promise.all([one.ack(), one.ack(), two.ack()]);
    expect([await children(client), await children(client, LOCKS)]).toEqual([[], []]);
  });

  it('hands an item out again where its taker dies', async () => {
    const [client, dying] = [await scene.open(), await scene.open()];
    await queue(client, PATH, LOCKED).put('one');
    const lost = await queue(dying, PATH, LOCKED).take();
    const waiting = queue(client, PATH, LOCKED).take();
    await expect.poll(() => client.openWatches).toBe(2);
    await expire(dying);
    const again = await waiting;
    expect(again.data.toString()).toBe('one');
    await expect(lost.ack()).rejects.toMatchObject({ fault: 'not-held' });
    await again.ack();
    expect([await children(client), await children(client, LOCKS)]).toEqual([[], []]);
  });

  it('puts what is not acknowledged at the end again, once for each attempt', async () => {
    const client = await scene.open();
    const mail = queue(client, PATH, LOCKED);
    await mail.putMany(['one', 'two']);
    {
      await using one = await mail.take();
      expect(one.data.toString()).toBe('one');
    }
    expect(await children(client)).toEqual(['queue-0000000001', 'queue-0000000002']);
    const had: string[] = [];
    for await (const item of mail) {
      had.push(item.data.toString());
      if (had.length > 1) await item.ack();
      if (had.length > 2) break;
    }
    expect(had).toEqual(['two', 'one', 'two']);
    expect([await children(client), await children(client, LOCKS)]).toEqual([[], []]);
  });

  it('loses no item of five takers of which some die, and hands none to two at a time', async () => {
    const producer = await scene.open();
    await queue(producer, PATH, LOCKED).putMany(numbers(40));
    const over = new AbortController();
    const inWork = new Set<string>();
    const done: string[] = [];
    const run = async (dies: boolean) => {
      const client = await scene.open();
      let count = 0;
      for await (const item of queue(client, PATH, { ...LOCKED, signal: over.signal })) {
        const text = item.data.toString();
        expect(inWork.has(text)).toBe(false);
        inWork.add(text);
        await new Promise((resolve) => setTimeout(resolve, 2));
        inWork.delete(text);
        count += 1;
        if (dies && count === 5) return client.close();
        await item.ack();
        done.push(text);
      }
    };
    const running = [run(true), run(true), run(false), run(false), run(false)];
    await expect.poll(() => children(producer)).toEqual([]);
    over.abort();
    await Promise.all(running);
    expect(done.sort()).toEqual(numbers(40).sort());
    // One that had just locked what another has acknowledged unlocks it in the background.
    await expect.poll(() => children(producer, LOCKS)).toEqual([]);
  });

  it('finds the lock, and what was acknowledged, where the replies are lost', async () => {
    const { client, proxy } = await scene.openThroughProxy();
    const observer = await scene.open();
    await queue(observer, PATH, LOCKED).put('one');
    await observer.ensurePath(LOCKS);
    const losing = beforeFirst(client, 'createWithParents', () => proxy.stall('to-client'));
    const taking = queue(losing, PATH, LOCKED).take();
    await expect.poll(() => children(observer, LOCKS)).toHaveLength(1);
    loseReply(proxy);
    const item = await taking;
    expect(item.data.toString()).toBe('one');
    proxy.stall('to-client');
    const acknowledging = item.ack();
    await expect.poll(() => children(observer)).toEqual([]);
    loseReply(proxy);
    await acknowledging;
    expect(await children(observer, LOCKS)).toEqual([]);
  });

  it('gives a lock back that was given up before it was known to be had', async () => {
    const { client, proxy } = await scene.openThroughProxy();
    const observer = await scene.open();
    await queue(observer, PATH, LOCKED).put('one');
    await observer.ensurePath(LOCKS);
    const losing = beforeFirst(client, 'createWithParents', () => proxy.stall('to-client'));
    const over = new AbortController();
    const taking = queue(losing, PATH, LOCKED).take({ signal: over.signal });
    await expect.poll(() => children(observer, LOCKS)).toHaveLength(1);
    over.abort(new Error('enough'));
    await expect(taking).rejects.toThrow('enough');
    loseReply(proxy);
    await expect.poll(() => children(observer, LOCKS)).toEqual([]);
  });
});
