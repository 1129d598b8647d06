import { afterEach, beforeEach, describe, expect, inject, test } from 'vitest';
import { stopLinePeers } from '../../../support/peers/line-peer.js';
import { type RecipePeer, startCuratorRecipes, startOurRecipes } from '../../../support/peers/recipe-peer.js';
import { uniqueChroot } from '../../../support/zookeeper.js';
import { excludeEachOther, type Side, untilContenders } from './recipe-suite.js';

const { connect } = inject('zookeeper');
const IN_VAIN_MS = 400;

const java: Side = { name: 'Java', start: startCuratorRecipes, waitingZnodes: 2 };
const ours: Side = { name: 'nodelease', start: startOurRecipes, waitingZnodes: 2 };

const same = [
  ['lock', 'lock'],
  ['write', 'write'],
  ['write', 'read'],
  ['read', 'write'],
  ['semaphore', 'semaphore'],
  ['latch', 'latch'],
] as const;

excludeEachOther({ first: java, second: ours, kinds: [...same, ['selector', 'lock']] });
excludeEachOther({ first: ours, second: java, kinds: [...same, ['lock', 'selector']] });

describe.each([
  [java, ours],
  [ours, java],
])('beyond exclusion', (one, another) => {
  let first: RecipePeer;
  let second: RecipePeer;
  let path: string;

  beforeEach(async () => {
    [first, second] = await Promise.all([one.start({ connect }), another.start({ connect })]);
    path = `${uniqueChroot('recipes')}/it`;
  });
  afterEach(stopLinePeers);

  test(`readers of ${one.name} and ${another.name} hold at once, and a writer waits for all of them`, async () => {
    await first.acquire({ id: 'r1', kind: 'read', path });
    expect(await second.acquire({ id: 'r2', kind: 'read', path })).not.toBeNull();
    const writing = second.acquire({ id: 'w', kind: 'write', path });
    await untilContenders(path, 3);
    await second.release('r2');
    expect(await first.acquire({ id: 'w0', kind: 'write', path, timeoutMs: IN_VAIN_MS })).toBeNull();
    await first.release('r1');
    expect(await writing).not.toBeNull();
  });

  test(`a reader of ${another.name} waits behind a waiting writer of ${one.name}`, async () => {
    await second.acquire({ id: 'r1', kind: 'read', path });
    const writing = first.acquire({ id: 'w', kind: 'write', path });
    await untilContenders(path, 2);
    expect(await second.acquire({ id: 'r2', kind: 'read', path, timeoutMs: IN_VAIN_MS })).toBeNull();
    const reading = second.acquire({ id: 'r3', kind: 'read', path });
    await untilContenders(path, 3);
    await second.release('r1');
    expect(await writing).not.toBeNull();
    await first.release('w');
    expect(await reading).not.toBeNull();
  });

  test(`a downgrade of ${one.name} lets readers of ${another.name} in, and keeps writers out`, async () => {
    await first.acquire({ id: 'w', kind: 'write', path });
    await first.downgrade('w');
    expect(await second.acquire({ id: 'r', kind: 'read', path })).not.toBeNull();
    await second.release('r');
    expect(await second.acquire({ id: 'w2', kind: 'write', path, timeoutMs: IN_VAIN_MS })).toBeNull();
    await first.release('w');
    expect(await second.acquire({ id: 'w3', kind: 'write', path })).not.toBeNull();
  });

  test(`a semaphore of 3 has ${one.name} and ${another.name} hold 3 leases, and each waits for the other’s`, async () => {
    const semaphore = { kind: 'semaphore', path, count: 3 } as const;
    await first.acquire({ id: 'a', ...semaphore });
    await second.acquire({ id: 'b', ...semaphore });
    await first.acquire({ id: 'c', ...semaphore });
    expect(await first.acquire({ id: 'd', ...semaphore, timeoutMs: IN_VAIN_MS })).toBeNull();
    expect(await second.acquire({ id: 'd', ...semaphore, timeoutMs: IN_VAIN_MS })).toBeNull();
    const fourth = first.acquire({ id: 'e', ...semaphore });
    await untilContenders(path, 5);
    await second.release('b');
    expect(await fourth).not.toBeNull();
    const fifth = second.acquire({ id: 'f', ...semaphore });
    await untilContenders(path, 5);
    await first.release('a');
    expect(await fifth).not.toBeNull();
    for (const [peer, id] of [[first, 'c'] as const, [first, 'e'] as const, [second, 'f'] as const])
      await peer.release(id);
    await untilContenders(path, 0);
  });

  test(`participants of both are seen by both when ${one.name} leads`, async () => {
    await first.acquire({ id: 'one', kind: 'latch', path });
    const waiting = second.acquire({ id: 'another', kind: 'latch', path });
    await untilContenders(path, 2);
    const expected = [
      { id: 'one', leads: true },
      { id: 'another', leads: false },
    ];
    expect(await first.participants('one')).toEqual(expected);
    await first.release('one');
    await waiting;
    const third = first.acquire({ id: 'third', kind: 'latch', path });
    await untilContenders(path, 2);
    expect(await second.participants('another')).toEqual([
      { id: 'another', leads: true },
      { id: 'third', leads: false },
    ]);
    await second.release('another');
    await third;
  });
});

describe('a holder that hangs past its session', () => {
  const path = () => `${uniqueChroot('recipes')}/it`;
  afterEach(stopLinePeers);

  /** Resolves once the other one has what the paused one had, and the paused one goes on. */
  async function paused(holder: RecipePeer, other: RecipePeer, at: string): Promise<void> {
    await holder.acquire({ id: 'a', kind: 'lock', path: at });
    const next = other.acquire({ id: 'b', kind: 'lock', path: at });
    await untilContenders(at, 2);
    process.kill(holder.pid as number, 'SIGSTOP');
    try {
      expect(await next).not.toBeNull();
    } finally {
      process.kill(holder.pid as number, 'SIGCONT');
    }
  }

  test('knows it before its next act when it is nodelease, while Java holds', async () => {
    const [holder, other] = await Promise.all([
      startOurRecipes({ connect, sessionTimeoutMs: 3_000 }),
      startCuratorRecipes({ connect }),
    ]);
    await paused(holder, other, path());
    expect(await holder.call('valid', { id: 'a' })).toBe(false);
    await expect.poll(() => holder.events).toContainEqual({ event: 'lost', id: 'a' });
  });

  test('learns it from its connection when it is Java, while nodelease holds', async () => {
    const [holder, other] = await Promise.all([
      startCuratorRecipes({ connect, sessionTimeoutMs: 3_000 }),
      startOurRecipes({ connect }),
    ]);
    await paused(holder, other, path());
    expect(await other.call('valid', { id: 'b' })).toBe(true);
    await expect.poll(() => holder.events).toContainEqual({ event: 'state', state: 'LOST' });
  });
});
