import { describe, expect, it } from 'vitest';
import { seededRandom, VirtualClock } from '../../test/support/virtual-clock.js';
import type { StartShard } from './holding.js';
import { Holdings } from './holdings.js';

const me = { id: 0, version: 1 };
const map = { epoch: 2, members: [me], shards: [{ owner: me, since: 2, next: undefined }] };

function holdingsOf(lease: { isValid: () => boolean }, start: StartShard) {
  return new Holdings({
    ...{ lease, clock: new VirtualClock(), random: seededRandom(1), start },
    ...{
      startTimeoutMs: 1_000,
      stopTimeoutMs: 1_000,
      renewEveryMs: 1_000,
      staggerMs: 200,
      running: new Uint8Array(1),
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
