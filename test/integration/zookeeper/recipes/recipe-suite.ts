import { afterAll, beforeAll, beforeEach, describe, expect, inject, test } from 'vitest';
import { systemClock, systemRandom } from '../../../../src/core/base/system.js';
import { openZooKeeper, type ZooKeeperClient } from '../../../../src/zookeeper/client/zookeeper-client.js';
import type { RecipeKind, RecipePeer, RecipePeerOptions } from '../../../support/peers/recipe-peer.js';
import { expireSession, uniqueChroot } from '../../../support/zookeeper.js';
import { treeAt } from './recipe-scenes.js';

/** A library that takes part. */
export interface Side {
  readonly name: string;
  readonly start: (options: RecipePeerOptions) => Promise<RecipePeer>;
  /**
   * How many znodes it has while it waits for a semaphore and is the first to: its place in the lock, and for
   * Curator a lease too many.
   */
  readonly waitingZnodes: number;
}

/** What of it is to exclude what. */
export interface Pair {
  readonly first: Side;
  readonly second: Side;
  /** What the first one uses, and the second. */
  readonly kinds: readonly (readonly [RecipeKind, RecipeKind])[];
}

/**
 * The servers hear of a process when it asks for what it then holds, or later, and look for silent clients in
 * steps.
 */
const KILLED = { sessionTimeoutMs: 3_000, stepMs: 500, withinMs: 10_000 };
/** How soon a contender has what is given back, on a loaded machine. */
const SOON_MS = 30_000;
/** How long a contender waits that is to wait in vain. */
const IN_VAIN_MS = 400;

const { connect } = inject('zookeeper');
let observer: ZooKeeperClient;

beforeAll(() => {
  observer = openZooKeeper({ connect, clock: systemClock, random: systemRandom });
});
afterAll(() => observer.close());

/** How many znodes there are that go with their sessions: held, or waiting for. */
export async function contenders(path: string): Promise<number> {
  return (await treeAt(observer, path)).filter(([, mode]) => mode === 'ephemeral').length;
}

/** Resolves when there are so many. */
export async function untilContenders(path: string, count: number): Promise<void> {
  await expect.poll(() => contenders(path), { timeout: SOON_MS }).toBe(count);
}

/** Exclusion, order, release and expiry of whatever one holder has at a time. */
export function excludeEachOther({ first, second, kinds }: Pair): void {
  describe.each(kinds)(
    `what ${first.name} holds as %s and ${second.name} wants as %s`,
    (firstKind, secondKind) => {
      let path: string;
      let holder: RecipePeer;
      let other: RecipePeer;
      // A semaphore of one lease, which is a lock.
      const held = (id: string) => ({ id, kind: firstKind, path, count: 1 });
      const wanted = (id: string, timeoutMs?: number) => ({
        id,
        kind: secondKind,
        path,
        count: 1,
        ...(timeoutMs ? { timeoutMs } : {}),
      });
      const waitingZnodes = secondKind === 'semaphore' ? second.waitingZnodes : 1;

      beforeAll(async () => {
        [holder, other] = await Promise.all([first.start({ connect }), second.start({ connect })]);
      });
      beforeEach(() => {
        path = `${uniqueChroot('recipes')}/it`;
      });
      afterAll(async () => {
        await Promise.all([holder.stop(), other.stop()]);
      });

      test('is kept from it, and a contender that gives up leaves nothing behind', async () => {
        await holder.acquire(held('a'));
        expect(await other.acquire(wanted('b', IN_VAIN_MS))).toBeNull();
        await untilContenders(path, 1);
        await holder.release('a');
        await untilContenders(path, 0);
      });

      test('goes to it when it is released, and back', async () => {
        await holder.acquire(held('a'));
        const next = other.acquire(wanted('b'));
        await untilContenders(path, 1 + waitingZnodes);
        const again = holder.acquire(held('c'));
        await holder.release('a');
        expect(await next).not.toBeNull();
        await other.release('b');
        expect(await again).not.toBeNull();
        await holder.release('c');
        await untilContenders(path, 0);
      });

      test('is had in the order in which they came', async () => {
        const had: string[] = [];
        const note = (id: string) => () => void had.push(id);
        await holder.acquire(held('a'));
        const waiting = [other.acquire(wanted('b')).then(note('b'))];
        await untilContenders(path, 1 + waitingZnodes);
        waiting.push(holder.acquire(held('c')).then(note('c')));
        await untilContenders(path, 2 + waitingZnodes);
        waiting.push(other.acquire(wanted('d')).then(note('d')));
        await untilContenders(path, 3 + waitingZnodes);
        await holder.release('a');
        await waiting[0];
        await other.release('b');
        await waiting[1];
        await holder.release('c');
        await waiting[2];
        await other.release('d');
        expect(had).toEqual(['b', 'c', 'd']);
      });

      test('goes to it when its process is killed, after its session’s time-out and not before', async () => {
        const killed = await first.start({ connect, sessionTimeoutMs: KILLED.sessionTimeoutMs });
        const askedAt = performance.now();
        await killed.acquire(held('a'));
        const next = other.acquire(wanted('b'));
        await untilContenders(path, 1 + waitingZnodes);
        const killedAt = performance.now();
        await killed.kill();
        expect(await next).not.toBeNull();
        const hadAt = performance.now();
        expect(hadAt - askedAt).toBeGreaterThan(KILLED.sessionTimeoutMs - KILLED.stepMs);
        expect(hadAt - killedAt).toBeLessThan(KILLED.withinMs);
        await other.release('b');
      });

      test('goes to it when the session expires under it', async () => {
        const expiring = await first.start({ connect });
        await expiring.acquire(held('a'));
        const next = other.acquire(wanted('b'));
        await untilContenders(path, 1 + waitingZnodes);
        await expireSession({ connect, sessionId: await expiring.session() });
        expect(await next).not.toBeNull();
        await other.release('b');
        await expiring.kill();
      });

      test('goes to it past one that was killed while it waited', async () => {
        const killed = await first.start({ connect, sessionTimeoutMs: 2_000 });
        await holder.acquire(held('a'));
        killed.acquire(held('dead')).catch(() => {});
        await expect.poll(() => contenders(path), { timeout: SOON_MS }).toBeGreaterThan(1);
        const next = other.acquire(wanted('b'));
        await expect.poll(() => contenders(path), { timeout: SOON_MS }).toBeGreaterThan(2);
        await killed.kill();
        await holder.release('a');
        expect(await next).not.toBeNull();
        await other.release('b');
      });

      if (firstKind !== 'selector' && secondKind !== 'selector')
        test('has a greater token each time', async () => {
          const tokens: bigint[] = [];
          for (let i = 0; i < 3; i += 1) {
            for (const [peer, what] of [[holder, held('a')] as const, [other, wanted('b')] as const]) {
              const had = await peer.acquire(what);
              if (!had?.token) throw new Error(`no token of ${what.kind}`);
              tokens.push(BigInt(had.token));
              await peer.release(what.id);
            }
          }
          expect(tokens).toEqual([...new Set(tokens)].sort((a, b) => (a < b ? -1 : 1)));
        });
    },
  );
}
