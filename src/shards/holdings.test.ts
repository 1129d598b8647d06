import { describe, expect, it } from 'vitest';
import { seededRandom, VirtualClock } from '../../test/support/virtual-clock.js';
import { Holdings } from './holdings.js';

describe('what a tenure runs', () => {
  it('begins only while its lease is valid at that moment, whatever the map says (T4)', () => {
    const started: number[] = [];
    const lease = { isValid: () => false };
    const holdings = new Holdings({
      ...{ lease, clock: new VirtualClock(), random: seededRandom(1) },
      ...{ stopTimeoutMs: 1_000, pauseMs: 1_000, staggerMs: 200, running: new Uint8Array(1) },
      start: (shard) => void started.push(shard),
      emit: () => undefined,
      onEnded: () => undefined,
    });
    const me = { id: 0, version: 1 };
    const map = { epoch: 2, members: [me], shards: [{ owner: me, since: 2, next: undefined }] };
    holdings.follow(map, me);
    expect(started).toEqual([]);
    lease.isValid = () => true;
    holdings.follow(map, me);
    expect(started).toEqual([0]);
  });
});
