import { describe, expect, it } from 'vitest';
import { dueChanges } from './due.js';

const me = { id: 0, version: 1 };
const other = { id: 1, version: 1 };

interface Case {
  readonly given?: number[];
  /** By shard, as the map says and as this tenure knows. The map says nothing of shard 0, and one of shard 1. */
  readonly failed?: [shard: number, count: number][];
  /** This tenure's, as the map says and as it is. */
  readonly before?: number;
  readonly limit?: number;
  readonly isMember?: boolean;
}

describe('what a tenure has to write in the map', () => {
  it.each<[string, Case, 'now' | 'soon' | 'nothing']>([
    ['nothing', {}, 'nothing'],
    ['a shard that it hands on', { given: [1] }, 'now'],
    ['the first failed start', { failed: [[0, 1]] }, 'now'],
    ['another failed start of the same shard', { failed: [[1, 2]] }, 'nothing'],
    ['a shard that runs well again', { failed: [[1, 0]] }, 'soon'],
    [
      'one that runs well again, and one that fails',
      {
        failed: [
          [0, 1],
          [1, 0],
        ],
      },
      'now',
    ],
    ['a limit', { limit: 1 }, 'now'],
    ['the same limit', { before: 1, limit: 1 }, 'nothing'],
    ['a smaller limit', { before: 1, limit: 0 }, 'now'],
    ['a greater limit', { before: 1, limit: 2 }, 'soon'],
    ['no limit any more', { before: 1 }, 'soon'],
    ['a limit of a tenure that is no member', { limit: 1, isMember: false }, 'nothing'],
  ])('%s', (_, { given = [], failed = [], before, limit, isMember = true }, when) => {
    const shard = { owner: me, token: 1, next: undefined };
    const map = {
      epoch: 1,
      members: [other, ...(isMember ? [me] : [])],
      shards: [shard, { ...shard, failed: 1 }],
      limits: new Map([[other, 3], ...(before === undefined ? [] : [[me, before] as const])]),
    };
    const holdings = {
      given: () => new Set(given),
      failed: () => new Map(failed),
      limit: () => limit,
    };
    const due = dueChanges(map, isMember ? me : undefined, holdings);
    expect(due).toMatchObject({ isUrgent: when !== 'nothing', isNow: when === 'now' });
    expect([due.given, due.failed]).toEqual([new Set(given), new Map(failed)]);
    const own = isMember && limit !== undefined ? [[me, limit] as const] : [];
    expect(due.limits).toEqual(new Map([[other, 3], ...own]));
  });
});
