import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { packageRoot } from '../support/package-root.js';
import { documentedStates, firstOfEach, verify } from '../support/programs/spin.js';
import { isTrimmed } from '../support/setup/tiers.js';

// docs/design/model.md says what the model shows. A run is what is defined in the model's preprocessor.

const MODEL = join(packageRoot, 'test/model/lease-restored.pml');

/** What does not hold, by how the assertion reads. */
const PROPERTIES = {
  exclusion: /known\[0\]\.left>0.*known\[1\]\.left>0/,
  fencing: /version>top/,
  kept: /object\.claim==known/,
  possible: /fell/,
} as const;

/** No violation in any state; the last one has all that the first one has, only in the whole tier. */
const SOUND = ['LOSSES=1 DURATION=2', 'SOUND'];

/** What each planted bug has to be found by. */
const FOUND_BY: Readonly<Record<string, keyof typeof PROPERTIES>> = {
  NO_QUIET: 'exclusion',
  FREE_AT_ONCE: 'exclusion',
  QUIET_NO_GRACE: 'exclusion',
  QUIET_FROM_START: 'exclusion',
  OLD_RECORD: 'fencing',
  NO_SECOND_LOOK: 'fencing',
  VACANT_STAYS: 'fencing',
  NO_LEAP: 'fencing',
  ONE_FLOOR: 'fencing',
  FAR_LEAP: 'fencing',
  COARSE_TIME: 'fencing',
  TOMBSTONE_UNMARKED: 'fencing',
  READ_COUNTS: 'exclusion',
  OLDER_IS_LOST: 'kept',
  KEPT: 'possible',
};

const page = readFileSync(join(packageRoot, 'docs/design/model.md'), 'utf8');
const section = (page.split('## A store that goes back')[1] ?? '').split(/^## /m)[0] ?? '';
const documented = documentedStates(section);

describe('the model of a store that goes back', { timeout: 900_000 }, () => {
  it('is documented with each planted bug that it has', () => {
    const planted = readFileSync(MODEL, 'utf8').matchAll(/^#(?:ifdef|elif defined)[ (](\w+)\)? \/\*/gm);
    const bugs = [...planted].map(([, name]) => name);
    expect(bugs.sort()).toEqual(Object.keys(FOUND_BY).sort());
    expect([...documented.keys()].sort()).toEqual([...bugs, ...SOUND].sort());
  });

  it.each(isTrimmed ? SOUND.slice(0, 1) : SOUND)('keeps its promises in every state: %s', async (run) => {
    const { output, ...found } = await verify(MODEL, run.split(' '));
    expect(found, output).toMatchObject({
      complete: true,
      errors: 0,
      violated: undefined,
      states: documented.get(run),
    });
  });

  it.each(firstOfEach(FOUND_BY))('shows what breaks with %s: %s', async (name, property) => {
    const { errors, violated, states, output } = await verify(MODEL, [name]);
    expect(errors, output).toBe(1);
    expect(violated).toMatch(PROPERTIES[property]);
    expect(states).toBe(documented.get(name));
  });
});
