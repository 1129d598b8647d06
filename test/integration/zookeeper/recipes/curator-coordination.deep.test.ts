import { afterEach, beforeEach, describe, expect, inject, test } from 'vitest';
import { stopLinePeers } from '../../../support/peers/line-peer.js';
import { type RecipePeer, startCuratorRecipes, startOurRecipes } from '../../../support/peers/recipe-peer.js';
import { uniqueChroot } from '../../../support/zookeeper.js';
import { client, closeClients } from '../discovery/discovery-support.js';
import { untilContenders } from './recipe-suite.js';

const { connect } = inject('zookeeper');
const IN_VAIN_MS = 400;
const LONG_MS = 30_000;
const ROUNDS = 8;

describe.each([
  ['Java', 'nodelease', startCuratorRecipes, startOurRecipes],
  ['nodelease', 'Java', startOurRecipes, startCuratorRecipes],
])('%s and %s', (one, another, startOne, startAnother) => {
  let first: RecipePeer;
  let second: RecipePeer;
  let path: string;

  beforeEach(async () => {
    [first, second] = await Promise.all([startOne({ connect }), startAnother({ connect })]);
    path = `${uniqueChroot('recipes')}/it`;
  });
  afterEach(async () => {
    await Promise.all([closeClients(), stopLinePeers()]);
  });

  test(`a barrier of ${one} holds ${another} up until either removes it, and outlives its maker`, async () => {
    expect(await second.waitOnBarrier(path, LONG_MS)).toBe(true);
    await first.barrier('set', path);
    await second.barrier('set', path);
    expect(await second.waitOnBarrier(path, IN_VAIN_MS)).toBe(false);
    const waiting = [first.waitOnBarrier(path, LONG_MS), second.waitOnBarrier(path, LONG_MS)];
    await first.barrier('remove', path);
    expect(await Promise.all(waiting)).toEqual([true, true]);
    await first.barrier('set', path);
    await first.stop();
    expect(await second.waitOnBarrier(path, IN_VAIN_MS)).toBe(false);
    await second.barrier('remove', path);
    expect(await second.waitOnBarrier(path, LONG_MS)).toBe(true);
  });

  test(`a double barrier lets ${one} and ${another} in together, and out together, round after round`, async () => {
    // Who waits for whom on leaving goes by the order of their names, which is chance.
    for (let round = 1; round <= ROUNDS; round += 1) {
      const barrier = { kind: 'double-barrier', path, count: 3 } as const;
      let inside = 0;
      const enter = (peer: RecipePeer, id: string) =>
        peer.acquire({ id: `${id}${round}`, ...barrier }).then((had) => {
          expect(had).not.toBeNull();
          inside += 1;
        });
      const entering = [enter(first, 'a')];
      await untilContenders(path, 1);
      entering.push(enter(second, 'b'));
      await untilContenders(path, 2);
      expect(inside).toBe(0);
      entering.push(enter(first, 'c'));
      await Promise.all(entering);

      let outside = 0;
      const leave = (peer: RecipePeer, id: string) =>
        peer.release(`${id}${round}`).then(() => {
          outside += 1;
        });
      const leaving = [leave(second, 'b'), leave(first, 'a')];
      await new Promise((resolve) => setTimeout(resolve, IN_VAIN_MS));
      expect(outside).toBe(0);
      leaving.push(leave(first, 'c'));
      await Promise.all(leaving);
      await untilContenders(path, 0);
      expect(await client(connect).children(path)).toEqual([]);
    }
  });

  test(`a double barrier opens for ${one} once ${another} comes, and one that gave up does not count`, async () => {
    const barrier = { kind: 'double-barrier', path, count: 2 } as const;
    const waiting = first.acquire({ id: 'a', ...barrier });
    await untilContenders(path, 1);
    expect(await second.acquire({ id: 'b', ...barrier })).not.toBeNull();
    expect(await waiting).not.toBeNull();
    await Promise.all([first.release('a'), second.release('b')]);
  });

  test(`a member of ${one} that is killed in a double barrier lets ${another} leave`, async () => {
    const killed = await startOne({ connect, sessionTimeoutMs: 2_000 });
    const barrier = { kind: 'double-barrier', path, count: 2 } as const;
    const entering = killed.acquire({ id: 'a', ...barrier });
    await untilContenders(path, 1);
    await second.acquire({ id: 'b', ...barrier });
    await entering;
    await killed.kill();
    await second.release('b');
    await untilContenders(path, 0);
  });

  test(`a counter that ${one} and ${another} change at once counts every change`, async () => {
    expect(await first.count(path, 'get')).toEqual({ succeeded: true, value: 0 });
    const adding = [
      [first, false],
      [second, false],
      [first, true],
      [second, true],
    ] as const;
    await Promise.all(
      adding.map(async ([peer, promoted]) => {
        for (let i = 0; i < 40; i += 1)
          expect(await peer.count(path, 'add', 3, promoted)).toMatchObject({ succeeded: true });
      }),
    );
    for (const peer of [first, second])
      expect(await peer.count(path, 'get')).toEqual({ succeeded: true, value: 480 });
    await first.count(path, 'set', -7);
    expect(await second.compareAndSet(path, -8, 0)).toMatchObject({ succeeded: false });
    expect(await second.compareAndSet(path, -7, -(2 ** 40))).toMatchObject({ succeeded: true });
    expect(await first.count(path, 'add', -1)).toEqual({ succeeded: true, value: -(2 ** 40) - 1 });
  });

  test(`a simple queue that ${one} fills has ${another} take its items in order, byte for byte`, async () => {
    const items = ['00ff', '6f6e65', '', 'c3a9'];
    for (const item of items) await first.offer(path, item);
    const taken: (string | null)[] = [];
    for (let i = 0; i < items.length; i += 1) taken.push(await second.poll(path, LONG_MS));
    expect(taken).toEqual(items);
    expect(await second.poll(path, IN_VAIN_MS)).toBeNull();
    const waiting = second.poll(path, LONG_MS);
    await first.offer(path, '01');
    expect(await waiting).toBe('01');
  });

  test(`a simple queue that ${one} and ${another} take from at once gives each item to one of them`, async () => {
    const items = Array.from({ length: 100 }, (_, i) => i.toString(16).padStart(4, '0'));
    for (const item of items) await first.offer(path, item);
    let left = items.length;
    const drain = async (peer: RecipePeer) => {
      const taken: string[] = [];
      for (;;) {
        const isOver = left <= 0;
        const item = await peer.poll(path, IN_VAIN_MS);
        if (item !== null) {
          taken.push(item);
          left -= 1;
        } else if (isOver) return taken;
      }
    };
    const [byFirst, bySecond] = await Promise.all([drain(first), drain(second)]);
    expect([...byFirst, ...bySecond].sort()).toEqual(items);
    expect([...byFirst].sort()).toEqual(byFirst);
  });

  const took = (peer: RecipePeer, id: string) =>
    peer.events
      .filter((event) => event.event === 'item' && (event as unknown as { id: string }).id === id)
      .map((event) => (event as unknown as { item: string }).item);

  test.each([undefined, '-locks'])(
    `a distributed queue that ${one} fills has ${another} take its items in order (lock path %s)`,
    async (suffix) => {
      const locks = suffix === undefined ? {} : { lockPath: `${path}${suffix}` };
      for (const item of ['one', 'zwei', 'trois é']) await first.put(path, item);
      await second.consume({ id: 'c', path, ...locks });
      await expect.poll(() => took(second, 'c'), { timeout: LONG_MS }).toEqual(['one', 'zwei', 'trois é']);
      await first.put(path, 'four');
      await expect
        .poll(() => took(second, 'c'), { timeout: LONG_MS })
        .toEqual(['one', 'zwei', 'trois é', 'four']);
      await second.stopConsuming('c');
      expect(await client(connect).children(path)).toEqual([]);
    },
  );

  test(`a distributed queue with a lock path that both take from gives each item to one of them`, async () => {
    const items = Array.from({ length: 60 }, (_, i) => `item-${i}`);
    const consumer = { path, lockPath: `${path}-locks`, holdMs: 20 };
    await first.consume({ id: 'a', ...consumer });
    await second.consume({ id: 'b', ...consumer });
    for (const item of items) await first.put(path, item);
    await expect
      .poll(() => [...took(first, 'a'), ...took(second, 'b')].length, { timeout: LONG_MS })
      .toBe(items.length);
    expect([...took(first, 'a'), ...took(second, 'b')].sort()).toEqual([...items].sort());
    await expect.poll(() => client(connect).children(path), { timeout: LONG_MS }).toEqual([]);
  });

  test(`an item that ${one} fails to consume is taken again, by ${another} too`, async () => {
    const consumer = { path, lockPath: `${path}-locks` };
    await first.put(path, 'hard');
    await first.consume({ id: 'a', ...consumer, fails: true, holdMs: 200 });
    await expect.poll(() => took(first, 'a').length, { timeout: LONG_MS }).toBeGreaterThan(1);
    await second.consume({ id: 'b', ...consumer });
    await expect.poll(() => took(second, 'b'), { timeout: LONG_MS }).toEqual(['hard']);
  });

  test(`an item is taken by ${another} when ${one} is killed while it consumes it`, async () => {
    const killed = await startOne({ connect, sessionTimeoutMs: 2_000 });
    const consumer = { path, lockPath: `${path}-locks` };
    await killed.consume({ id: 'a', ...consumer, holdMs: 60_000 });
    await first.put(path, 'once more');
    await expect.poll(() => took(killed, 'a'), { timeout: LONG_MS }).toEqual(['once more']);
    await second.consume({ id: 'b', ...consumer });
    await killed.kill();
    // Curator watches the items alone, not their locks: it looks again when another item comes.
    const further = another === 'Java' ? ['further'] : [];
    await untilContenders(`${path}-locks`, 0);
    for (const item of further) await first.put(path, item);
    await expect
      .poll(() => took(second, 'b').sort(), { timeout: LONG_MS })
      .toEqual([...further, 'once more']);
  });
});
