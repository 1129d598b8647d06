import { afterAll, beforeAll, expect, it } from 'vitest';
import { countCosts } from '../../bench/shards/count-costs.js';
import { shardPromises } from '../../bench/shards/promises.js';
import { isKept } from '../../bench/storm/promises.js';
import { useQuickAbort } from './world/quick-abort.js';

// A small share of `npm run bench:shards`, in virtual time.

let undo: (() => void) | undefined;
beforeAll(() => {
  undo = useQuickAbort();
});
afterAll(() => undo?.());

const broken = (rows: Parameters<typeof shardPromises>[0]) =>
  shardPromises(rows).filter((promised) => !isKept(promised));

it('shards cost a node as much, and run again as soon, however many they are, and have one owner; a lease a shard breaks that', async () => {
  const rows = await countCosts([32, 128], { nodes: 10, seed: 1, crashes: 2 });
  expect(shardPromises(rows)).toHaveLength(1 + 2 * 7);
  expect(broken(rows)).toEqual([]);
  const plain = rows.map((row) => ({ ...row, shards: row.leaseAShard }));
  expect(broken(plain).map(({ what }) => what)).toEqual(
    expect.arrayContaining([
      '128 shards: more writes a node and minute',
      '128 shards: with two owners, seconds',
    ]),
  );
});
