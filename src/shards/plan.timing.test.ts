import { expect, it } from 'vitest';
import { shardFleet } from '../../test/support/shard-fleet.js';
import { plan } from './plan.js';
import { decodeMap, encodeMap, type ShardMap } from './shard-map.js';

/** The shortest of some runs, in milliseconds: the others measure the machine. */
function fastest(act: () => void): number {
  const times = Array.from({ length: 20 }, () => {
    const begun = performance.now();
    act();
    return performance.now() - begun;
  });
  return Math.min(...times);
}

it('4,096 shards of 100 members are read, planned and written in 20 ms', () => {
  const shards = Array.from({ length: 4_096 }, () => ({ owner: undefined, since: 0, next: undefined }));
  const members = Array.from({ length: 101 }, (_, id) => ({ id, version: 1 }));
  const body = encodeMap({ epoch: 1, members: [], shards });
  let map: ShardMap | undefined;
  const first = fastest(() => {
    map = plan(decodeMap(body), { members: members.slice(1) });
    encodeMap(map as ShardMap);
  });
  expect(first).toBeLessThan(20);
  expect(fastest(() => plan(map as ShardMap, { members, settled: true }))).toBeLessThan(20);
});

it('owns() takes less than 100 ns for an id, and less than a microsecond for a text', async () => {
  const fleet = shardFleet({ count: 64 });
  const { shards } = await fleet.task();
  await fleet.untilAllRun();
  const calls = 100_000;
  const nsOf = (key: string | bigint) =>
    (fastest(() => {
      for (let call = 0; call < calls; call += 1) shards.owns(key);
    }) *
      1e6) /
    calls;
  expect(nsOf(17n)).toBeLessThan(100);
  expect(nsOf('customer-17')).toBeLessThan(1_000);
});
