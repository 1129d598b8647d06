import { describe, expect, it } from 'vitest';
import { seededRandom, settled, VirtualClock } from '../../../test/support/virtual-clock.js';
import type { StartShard } from './holding.js';
import { Holdings } from './holdings.js';

const me = { id: 0, version: 1 };
const map = { epoch: 2, members: [me], shards: [{ owner: me, token: 2, next: undefined }] };

function holdingsOf(lease: { isValid: () => boolean }, start: StartShard) {
  return new Holdings({
    ...{ lease, clock: new VirtualClock(), random: seededRandom(1), start },
    ...{
      startTimeoutMs: 1_000,
      stopTimeoutMs: 1_000,
      renewEveryMs: 1_000,
      staggerMs: 200,
      running: new Uint8Array(600),
    },
    emit: () => undefined,
    onDue: () => undefined,
  });
}

describe('what a tenure runs', () => {
  it('begins only while its lease is valid at that moment, whatever the map says (T4)', () => {
    const started: number[] = [];
    const lease = { isValid: () => false };
    const holdings = holdingsOf(lease, (shard) => void started.push(shard));
    holdings.follow(map, me);
    expect(started).toEqual([]);
    lease.isValid = () => true;
    holdings.follow(map, me);
    expect(started).toEqual([0]);
  });

  it('begins and stops 256 shards at a time, so that the thread that renews goes on between', async () => {
    const started: number[] = [];
    const stopped: number[] = [];
    const holdings = holdingsOf({ isValid: () => true }, (shard) => {
      started.push(shard);
      return () => void stopped.push(shard);
    });
    const other = { id: 1, version: 1 };
    const many = (next?: typeof other) => ({
      ...{ epoch: 2, members: [me, other] },
      shards: Array.from({ length: 600 }, () => ({ owner: me, token: 2, next })),
    });
    for (const begun of [256, 512, 600]) {
      holdings.follow(many(), me);
      expect([started.length, holdings.beginsMore]).toEqual([begun, begun < 600]);
      await settled();
    }
    const moving = many(other);
    holdings.follow(moving, me);
    holdings.moveAt = 0;
    for (const ended of [256, 512, 600]) {
      holdings.follow(moving, me);
      await settled();
      expect([stopped.length, holdings.moveAt]).toEqual([ended, ended < 600 ? 0 : Number.POSITIVE_INFINITY]);
    }
  });

  it('takes a start that returns what is no function for work that may run, and hands nothing on (T5)', async () => {
    const wrong = (() => new Map()) as unknown as StartShard;
    const holdings = holdingsOf({ isValid: () => true }, wrong);
    holdings.follow(map, me);
    await settled();
    void holdings.stop();
    await settled();
    expect([holdings.failedStarts, holdings.areIdle, holdings.given(map, me).size]).toEqual([0, false, 0]);
  });

  it('ends at once where the start itself finds that the lease is lost (T7)', () => {
    const lease = { isValid: () => true };
    let ends: AbortSignal | undefined;
    const holdings = holdingsOf(lease, (_, { signal }) => {
      lease.isValid = () => false;
      ends = signal;
    });
    holdings.follow(map, me);
    expect(ends?.aborted).toBe(true);
  });
});
