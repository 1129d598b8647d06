import { describe, expect, it } from 'vitest';
import { explainRepair } from './explain-repair.js';
import type { RepairAct, Tenure } from './shards-trace.js';

const A: Tenure = { id: 0, version: 7 };
const A_LATER: Tenure = { id: 0, version: 8 };
const B: Tenure = { id: 1, version: 1 };
/** Its node id is newer than the repair. */
const NEW: Tenure = { id: 2, version: 1 };

type Act = RepairAct extends infer One ? (One extends RepairAct ? Omit<One, 'at'> : never) : never;

const begins = (tenure: Tenure): Act => ({ kind: 'begins', tenure });
const ends = (tenure: Tenure): Act => ({ kind: 'ends', tenure });
const draws = (floor: number, created: boolean): Act => ({ kind: 'draws', floor, created, peak: 2 });
const marks = (tenure: Tenure, epoch: number | undefined): Act => ({ kind: 'marks', tenure, epoch });
const follows = (tenure: Tenure, epoch: number): Act => ({ kind: 'follows', tenure, epoch });
const starts = (tenure: Tenure, token: number): Act => ({ kind: 'starts', tenure, shard: 0, token });
const stops = (tenure: Tenure, token: number): Act => ({ kind: 'stops', tenure, shard: 0, token });
const looks = (id: number): Act => ({ kind: 'looks', floor: 100, id });
const founds = (epoch: number, frozen = false): Act => ({
  ...{ kind: 'writes', tenure: undefined, epoch, frozen },
  shards: [{ owner: undefined, token: 0 }],
});
const gives = (tenure: Tenure, epoch: number, owner: Tenure): Act => ({
  ...{ kind: 'writes', tenure, epoch },
  shards: [{ owner, token: epoch }],
});
const joins = (tenure: Tenure): readonly Act[] => [
  begins(tenure),
  marks(tenure, 0),
  { kind: 'reads', tenure },
];

/** The first act without a path, by its place, or 'path'. */
function explained(...acts: readonly Act[]): number | 'path' {
  const trace = acts.map((act, at) => ({ ...act, at }) as RepairAct);
  return explainRepair(trace, 1).failure?.at ?? 'path';
}

const begun = [draws(0, false), ...joins(A), founds(1), { kind: 'creates' } as const];
/** A runs the shard, and B takes part. */
const running = [
  ...[...begun, ...joins(B), { kind: 'reads', tenure: A } as const, follows(A, 1)],
  ...[gives(A, 2, A), follows(A, 2), starts(A, 2), follows(B, 2)],
];
const frozen = [...running, { kind: 'loses' } as const, draws(100, true), founds(101, true)];
const stopped = [...frozen, follows(A, 101), stops(A, 2), marks(A, 101), follows(B, 101), marks(B, 101)];
const opened = [...stopped, looks(0), looks(1), founds(102)];

describe('a trace of the map is a path of the model', () => {
  it('where a repair waits until each lease shows the frozen epoch', () => {
    const next = [follows(B, 102), gives(B, 103, B), follows(B, 103), starts(B, 103)];
    expect(explained(...opened, ...next)).toBe('path');
  });

  it('where a lease is done with since its tenure is over, or takes part no more', () => {
    const shown = [follows(B, 101), marks(B, 101)];
    expect(explained(...frozen, ...shown, ends(A), looks(0), looks(1), founds(102))).toBe('path');
    const left = [stops(A, 2), marks(A, undefined)];
    expect(explained(...frozen, ...shown, ...left, looks(0), looks(1), founds(102))).toBe('path');
  });

  it('where a node id is newer than the repair, which does not read its lease', () => {
    const early = joins(NEW);
    expect(explained(...stopped, ...early, looks(0), looks(1), founds(102))).toBe('path');
  });

  it('where a write arrives after its tenure is over', () => {
    const over = [ends(A), begins(A_LATER), gives(A, 3, B), follows(B, 3), starts(B, 3)];
    expect(explained(...running, stops(A, 2), ...over)).toBe('path');
  });

  it('where a tenure that has failed to take part tries again', () => {
    const again = [
      marks(B, undefined),
      marks(B, 0),
      follows(B, 1),
      gives(B, 2, B),
      follows(B, 2),
      starts(B, 2),
    ];
    expect(explained(...begun, ...joins(B), ...again)).toBe('path');
  });

  it('where an outdated map is followed, and nothing comes of it', () => {
    const late: Act = { kind: 'follows', tenure: NEW, epoch: 1, isOutdated: true };
    expect(explained(...begun, late, ...joins(NEW))).toBe('path');
  });
});

describe('the first act without a path is', () => {
  it.each<readonly [string, readonly Act[], readonly Act[]]>([
    ['a second first map of a series (T10, 2)', frozen, [{ kind: 'loses' }, founds(101, true)]],
    ['a first map of a repair that is not frozen (T10, 6)', frozen.slice(0, -1), [founds(101)]],
    ['a first map without a series (T10, 1)', [], [founds(1)]],
    [
      'a settings object that says too early that the map is there (T10, 3)',
      [draws(0, false)],
      [{ kind: 'creates' }],
    ],
    ['a map that is read before the mark is there (T10, 5)', [...begun, begins(B)], [follows(B, 1)]],
    [
      'a mark that shows the frozen epoch while work still ends (T10, 6)',
      [...frozen, follows(A, 101)],
      [marks(A, 101)],
    ],
    ['a mark that is removed while work still ends (T10, 7)', frozen, [marks(A, undefined)]],
    ['a start by a frozen map', [...frozen, follows(A, 101), stops(A, 2)], [starts(A, 101)]],
    ['an owner in a frozen map (T10, 6)', stopped, [gives(A, 102, A)]],
    ['a map that is opened before each lease was read (T10, 7)', [...stopped, looks(0)], [founds(102)]],
    [
      'or was read too early',
      [...frozen, looks(0), ...stopped.slice(frozen.length), looks(1)],
      [founds(102)],
    ],
    ['a map that is opened by an earlier repair', [...opened.slice(0, -1), { kind: 'loses' }], [founds(102)]],
    [
      'a write of a tenure that was over before it could be sent',
      [...running, ends(A), begins(A_LATER)],
      [gives(A_LATER, 3, B)],
    ],
    ['a shard that is taken from a valid tenure (T6)', running, [gives(B, 3, B)]],
    [
      'a start with another token than that of the map (T4)',
      [...opened, follows(B, 102), gives(B, 103, B), follows(B, 103)],
      [starts(B, 102)],
    ],
    ['a second draw of a series', begun, [draws(0, true)]],
  ])('%s', (_, before, acts) => {
    expect(explained(...before)).toBe('path');
    expect(explained(...before, ...acts)).toBe(before.length + acts.length - 1);
  });
});
