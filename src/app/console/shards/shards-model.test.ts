import { describe, expect, it } from 'vitest';
import type { ShardsReport } from '../../../node/wire/cluster-snapshot.js';
import { cellsPath, partsOf, shardText } from './shards-model.js';

const a = { id: 3, version: 17 };
const b = { id: 5, version: 2 };
const c = { id: 7, version: 1 };
const map: ShardsReport = {
  epoch: 41,
  problem: null,
  members: [a, b, c],
  shards: [
    [1, 12, -1],
    [1, 12, 0],
    [0, 41, -1],
    [-1, 7, -1],
    [0, 41, -1],
  ],
  failed: [[4, 2]],
  limits: [[0, 1]],
};

describe('the shards of a cluster', () => {
  it('are of their owners, those with the most first, also with those without any', () => {
    expect(partsOf(map)).toEqual({
      owners: [
        { member: a, shards: [2, 4] },
        { member: b, shards: [0, 1] },
        { member: c, shards: [] },
      ],
      moving: [1],
      orphaned: [3],
      failing: [4],
    });
  });

  it('are named with their owner, its version, the token, and what is waited for', () => {
    const held = () => 'held';
    expect([0, 1, 3, 4].map((shard) => shardText(map, shard, held))).toEqual([
      'shard 0: node 5 (version 2), token 12',
      'shard 1: node 5 (version 2), token 12, next node 3 (version 17), waits for node 5 to stop it',
      'shard 3: no owner, token 7, waits for a node that takes it',
      'shard 4: node 3 (version 17), token 41, waits for node 3 to start it, failed starts in a row: 2',
    ]);
    expect(shardText(map, 1, ({ id }) => (id === 5 ? 'overdue' : 'held'))).toBe(
      'shard 1: node 5 (version 2), token 12, next node 3 (version 17), waits for the proof that node 5 is over: its lease is overdue',
    );
  });

  it('have a cell each, row by row', () => {
    expect(cellsPath([0, 4, 5], 3, 'h9')).toBe('M0 0h9M10 10h9M20 10h9');
  });
});
