import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { packageRoot } from '../support/package-root.js';
import { documentedStates, firstOfEach, verify } from '../support/programs/spin.js';
import { isTrimmed } from '../support/setup/tiers.js';

// docs/design/model.md says what the model shows, and in a section of its own what lease-restored.pml does.

const MODEL = join(packageRoot, 'test/model/lease.pml');

/** What does not hold, by how the assertion reads. */
const PROPERTIES = {
  exclusion: /works\[0\].*works\[1\]/,
  fencing: /version/,
  finality: /^\(known\[\w+\]\.left>0\)$/,
  proof: /^!\(\(works\[t\]/,
} as const;

/** What each planted bug has to be found by. */
const FOUND_BY: Readonly<Record<string, keyof typeof PROPERTIES>> = {
  DEADLINE_FROM_REPLY: 'exclusion',
  BELIEVE_TIMER: 'exclusion',
  REVIVE: 'finality',
  UPPER_AGE: 'exclusion',
  NO_GRACE: 'exclusion',
  WALL_CLOCK: 'exclusion',
  UNKNOWN_IS_APPLIED: 'fencing',
  CREDIT_NEWEST: 'exclusion',
  TASK_ID_ONLY: 'exclusion',
  RENEW_BLINDLY: 'fencing',
  RELEASE_BEFORE_END: 'exclusion',
  EMPTY_RELEASE: 'fencing',
  FORGET_VERSION: 'fencing',
  EVICT_AT_ONCE: 'exclusion',
  PROOF_AT_ONCE: 'proof',
  SHORTER_AT_ONCE: 'exclusion',
  LONGER_WHEN_READ: 'exclusion',
  ROUNDED_DOWN: 'exclusion',
  HALF_OF_REST: 'exclusion',
  READ_BACK_CLEARS: 'exclusion',
  NEWEST_BOUND: 'exclusion',
  REFUSAL_CLEARS: 'exclusion',
  BY_SETTINGS: 'exclusion',
  EVICT_BY_SETTINGS: 'exclusion',
};

const page = readFileSync(join(packageRoot, 'docs/design/model.md'), 'utf8');
const documented = documentedStates(page.split('## A store that goes back')[0] ?? '');

describe('the model of the protocol', { timeout: 900_000 }, () => {
  it('is documented with each planted bug that it has', () => {
    const bugs = [...readFileSync(MODEL, 'utf8').matchAll(/^#(?:ifdef|elif defined)[ (](\w+)\)? \/\*/gm)].map(
      ([, name]) => name,
    );
    expect(bugs.sort()).toEqual(Object.keys(FOUND_BY).sort());
    expect([...documented.keys()].sort()).toEqual(
      [...bugs, 'EACH_LATE', 'PROOFS', 'PROOFS TUNED', 'SOUND', 'TUNED'].sort(),
    );
  });

  // With readers it has all that it has without.
  it.each(isTrimmed ? ['PROOFS'] : ['SOUND', 'PROOFS', 'PROOFS TUNED'])(
    'keeps its promises in every state: %s',
    async (name) => {
      const { output, ...found } = await verify(MODEL, name.split(' '));
      expect(found, output).toMatchObject({
        complete: true,
        errors: 0,
        violated: undefined,
        states: documented.get(name),
      });
    },
  );

  it.each(firstOfEach(FOUND_BY))('shows what breaks with %s: %s', async (name, property) => {
    const { errors, violated, states, output } = await verify(MODEL, [name]);
    expect(errors, output).toBe(1);
    expect(violated).toMatch(PROPERTIES[property]);
    expect(states).toBe(documented.get(name));
  });
});
