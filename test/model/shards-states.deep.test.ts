import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { packageRoot } from '../support/package-root.js';
import { documentedStates } from '../support/programs/spin.js';
import { isTrimmed } from '../support/setup/tiers.js';
import type { Bounds } from './shards-model.js';
import { countStates } from './shards-states.js';

// The page has SPIN's numbers: shards.deep.test.ts compares them.

/** The trimmed tier leaves out what takes longer than some seconds. */
const MOST_STATES = isTrimmed ? 200_000 : Number.POSITIVE_INFINITY;

const page = readFileSync(join(packageRoot, 'docs/design/shards.md'), 'utf8');
const [, rules = ''] = /### Rules T1 to T8\n(.*?)\n#/s.exec(page) ?? [];
const sound = [...documentedStates(rules)].flatMap(([run, states]) => {
  const bounds = boundsOf(run);
  return bounds === undefined ? [] : [{ run, states, bounds }];
});

/** The defines of shards.pml; undefined where one of them plants a bug. */
function boundsOf(run: string): Bounds | undefined {
  const defines = Object.fromEntries(run.split(' ').map((define) => define.split('=')));
  const { NODES = 2, TENURES = 2, EPOCHS = 4, SHARDS = 1, ...flags } = defines;
  const { ANY_TENURES, FUTURE_OWNERS, CALM, ...bugs } = flags;
  if (Object.keys(bugs).length > 0) return undefined;
  const anyTenures = 'ANY_TENURES' in flags;
  return {
    nodes: Number(NODES),
    tenures: anyTenures ? 1 : Number(TENURES),
    shards: Number(SHARDS),
    epochs: Number(EPOCHS),
    anyTenures,
    futureOwners: 'FUTURE_OWNERS' in flags,
    calm: 'CALM' in flags,
  };
}

describe('the copy of the model of shards', { timeout: 900_000 }, () => {
  it('is compared with SPIN for every run without a planted bug', () => {
    expect(sound.map(({ run }) => run)).toHaveLength(8);
  });

  it.each(sound.filter(({ states }) => states < MOST_STATES))(
    'has as many states as SPIN finds: $run',
    ({ bounds, states }) => {
      expect(countStates(bounds)).toBe(states);
    },
  );
});
