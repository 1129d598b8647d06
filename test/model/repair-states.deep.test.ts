import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { packageRoot } from '../support/package-root.js';
import { documentedStates, firstOfEach } from '../support/programs/spin.js';
import { isTrimmed } from '../support/setup/tiers.js';
import { countStates, type SearchBounds } from './repair-states.js';

// The page has SPIN's numbers: shards.deep.test.ts compares them.

/** More need gigabytes. The trimmed tier leaves out what takes longer than some seconds. */
const MOST_STATES = isTrimmed ? 200_000 : 3_000_000;

/** The bugs of shards-repair.pml that the copy has, and what the shortest path breaks: SPIN's is another one. */
const FOUND_BY = {
  'ABSENT_BEGINS BEGUN': 'exclusion',
  'BACK BEGUN COPIES': 'tokens',
  'NO_FREEZE BEGUN': 'exclusion',
  'NO_WAIT BEGUN': 'exclusion',
  'SHOW_EARLY BEGUN': 'exclusion',
  'LEAVE_EARLY BEGUN': 'exclusion',
  'OLD_CONTENT BEGUN COPIES': 'exclusion',
} as const;

const page = readFileSync(join(packageRoot, 'docs/design/shards.md'), 'utf8');
const [, rule = ''] = /### Rule T10\n(.*?)\n#/s.exec(page) ?? [];
const documented = documentedStates(rule);
const sound = [...documented].flatMap(([run, states]) => {
  const bounds = boundsOf(run);
  return bounds.bug === undefined ? [{ run, states, bounds }] : [];
});

/** The defines of shards-repair.pml; what the copy does not have is a bug. */
function boundsOf(run: string): SearchBounds {
  const defines = Object.fromEntries(run.split(' ').map((define) => define.split('=')));
  const { NODES = 2, EPOCHS = 3, SERIES = 2, DAMAGES = 1, BEGUN, COPIES, ...others } = defines;
  return {
    nodes: Number(NODES),
    epochs: Number(EPOCHS),
    series: Number(SERIES),
    damages: Number(DAMAGES),
    begun: 'BEGUN' in defines,
    copies: 'COPIES' in defines,
    bug: Object.keys(others)[0],
  };
}

describe('the copy of the model of repairs', { timeout: 900_000 }, () => {
  it('is compared with SPIN for every run without a planted bug or the calm', () => {
    expect(sound).toHaveLength(6);
  });

  it.each(sound.filter(({ states }) => states < MOST_STATES))(
    'has as many states as SPIN finds: $run',
    ({ bounds, states }) => {
      expect(countStates(bounds)).toBe(states);
    },
  );

  it.each(firstOfEach(FOUND_BY))('shows what breaks with %s: %s', (run, property) => {
    expect(documented.has(run)).toBe(true);
    expect(() => countStates(boundsOf(run))).toThrow(property);
  });
});
