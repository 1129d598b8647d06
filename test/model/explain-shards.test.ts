import { describe, expect, it } from 'vitest';
import { explainShards } from './explain-shards.js';
import type { ShardAct, Tenure } from './shards-trace.js';

const A: Tenure = { id: 3, version: 7 };
const A_LATER: Tenure = { id: 3, version: 9 };
const B: Tenure = { id: 5, version: 1 };

type Act = ShardAct extends infer One ? (One extends ShardAct ? Omit<One, 'at'> : never) : never;

const begins = (tenure: Tenure): Act => ({ kind: 'begins', tenure });
const ends = (tenure: Tenure): Act => ({ kind: 'ends', tenure });
const follows = (tenure: Tenure, epoch: number): Act => ({ kind: 'follows', tenure, epoch });
const starts = (tenure: Tenure, token: number): Act => ({ kind: 'starts', tenure, shard: 0, token });
const stops = (tenure: Tenure, token: number): Act => ({ kind: 'stops', tenure, shard: 0, token });
const writes = (by: Tenure, epoch: number, owner?: Tenure, token = epoch): Act => ({
  kind: 'writes',
  tenure: by,
  epoch,
  shards: [{ owner, token: owner ? token : 0 }],
});

/** The first act without a path, by its place, or 'path'. */
function explained(...acts: readonly Act[]): number | 'path' {
  const trace = acts.map((act, at) => ({ ...act, at }) as ShardAct);
  const { failure, acts: before } = explainShards([{ acts: trace }]);
  if (failure === undefined) return 'path';
  expect(before).toBe(failure.at);
  return failure.at;
}

/** A runs the shard, and B is there; the map has epoch 102. */
const running = [
  begins(A),
  begins(B),
  writes(A, 101),
  follows(A, 101),
  writes(A, 102, A),
  follows(A, 102),
  starts(A, 102),
  follows(B, 102),
];

describe('a trace of shards is a path of the model', () => {
  it('where an owner stops a shard, hands it on, and the next one starts it', () => {
    expect(explained(...running, stops(A, 102), writes(A, 103, B), follows(B, 103), starts(B, 103))).toBe(
      'path',
    );
  });

  it('where a hand-on is refused and sent again, without an act that says so', () => {
    const refused = [stops(A, 102), writes(B, 103, A, 102), follows(A, 103)];
    expect(explained(...running, ...refused, writes(A, 104, B), follows(B, 104), starts(B, 104))).toBe(
      'path',
    );
  });

  it('where a shard is handed on that never ran', () => {
    expect(explained(...running.slice(0, 6), writes(A, 103, B))).toBe('path');
  });

  it('where another task takes the shard of a tenure that is over, also from its later tenure', () => {
    expect(explained(...running, ends(A), writes(B, 103, B), follows(B, 103), starts(B, 103))).toBe('path');
    expect(explained(...running, ends(A), begins(A_LATER), writes(B, 103, A_LATER))).toBe('path');
  });

  it('where the map of a repair names a tenure that is over, and its frozen map is read late', () => {
    expect(explained(begins(A), ends(A), begins(B), writes(B, 201), writes(B, 202, A), follows(B, 200))).toBe(
      'path',
    );
  });

  it('where a tenure that is over reads the map, or ends its work late', () => {
    expect(explained(...running, ends(A), stops(A, 102), writes(B, 103, B), follows(A, 103))).toBe('path');
  });
});

describe('the first act without a path is', () => {
  it.each<readonly [string, readonly Act[]]>([
    ['a write that takes a shard from a tenure that is not over (T6)', [writes(B, 103, B)]],
    ['a hand-on of what runs (T5)', [writes(A, 103, B)]],
    ['a write that leaves out an epoch (T1)', [writes(B, 104, A, 102)]],
    ['a write of an epoch that there was (T1)', [writes(B, 102, A)]],
    ['a new token for a shard that stays (T3)', [writes(B, 103, A)]],
    ['an owner that has never begun', [writes(B, 103, { id: 5, version: 2 })]],
    ['a start by another task than the owner (T4)', [starts(B, 102)]],
    ['a second start of what runs (T4)', [starts(A, 102)]],
    ['an epoch that the map has not had yet (T2)', [follows(B, 103)]],
    ['an epoch that a tenure has followed (T2)', [follows(A, 102)]],
    ['an end of what does not run', [stops(B, 102)]],
    ['an end of what runs with another token', [stops(A, 101)]],
    ['a tenure of a node that has one', [begins(A_LATER)]],
  ])('%s', (_, acts) => {
    expect(explained(...running, ...acts)).toBe(running.length);
  });

  it('a start of what was given up (T5)', () => {
    expect(explained(...running, stops(A, 102), starts(A, 102))).toBe(running.length + 1);
  });

  it('a start with another token than that of the map (T4)', () => {
    expect(explained(...running.slice(0, 6), starts(A, 101))).toBe(6);
  });

  it('a start by a tenure that is over (T4)', () => {
    expect(explained(...running.slice(0, 6), ends(A), starts(A, 102))).toBe(7);
  });

  it('a hand-on with the token of the epoch before (T3)', () => {
    expect(explained(...running, stops(A, 102), writes(A, 103, B, 102))).toBe(running.length + 1);
  });
});

it('counts the traces that are whole, and by what the others were ended', () => {
  const acts = running.map((act, at) => ({ ...act, at }) as ShardAct);
  expect(
    explainShards([{ acts, leftOut: 'map-damaged' }, { acts }, { acts, leftOut: 'map-damaged' }]),
  ).toEqual({
    ...{ acts: 3 * acts.length, maps: 1, leftOut: { 'map-damaged': 2 } },
    failure: undefined,
  });
});

it('says of an act without a path who did what, and what the model has', () => {
  const acts = [...running, writes(B, 103, B)].map((act, at) => ({ ...act, at }) as ShardAct);
  expect(explainShards([{ acts }]).failure?.text).toBe(
    'node 5 version 1 writes epoch 103, with owners and tokens: node 5 version 1 103, ' +
      'which is on no path of shards.pml; before that, the map has epoch 102; ' +
      'its node follows 102, its lease is valid; ' +
      'shard 0 is that of node 3 version 7 with token 102, it runs 0 and has given up 0',
  );
});
