import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { packageRoot } from '../support/package-root.js';
import { documentedStates, firstOfEach, verify } from '../support/programs/spin.js';
import { isTrimmed } from '../support/setup/tiers.js';

// docs/design/model.md says what the model shows. A run is what is defined in the model's preprocessor.

const MODEL = join(packageRoot, 'test/model/once.pml');

/** What does not hold, by how the assertion reads. */
const PROPERTIES = {
  twice: /started\[/,
  together: /runs\[/,
  success: /finished\[/,
} as const;

/** No violation in any state. */
const SOUND = ['RETRY RESEND TICKS=2', 'RESEND TICKS=3', 'RETRY RESEND TICKS=3'];

/** What each planted bug has to be found by. */
const FOUND_BY: Readonly<Record<string, keyof typeof PROPERTIES>> = {
  NOT_EQUAL: 'twice',
  'START_FIRST TICKS=3': 'twice',
  BLIND: 'twice',
  UNKNOWN_APPLIED: 'twice',
  'RETRY NO_CHECK TICKS=3': 'together',
  'RETRY WORK_GOES_ON TICKS=3': 'together',
  'RETRY NO_LOCK TICKS=3': 'together',
  'RETRY RELEASE_UNRECORDED TICKS=3': 'success',
};

const page = readFileSync(join(packageRoot, 'docs/design/model.md'), 'utf8');
const documented = documentedStates((page.split('## Ticks')[1] ?? '').split(/^## /m)[0] ?? '');

describe('the model of ticks', { timeout: 900_000 }, () => {
  it('is documented with each planted bug that it has', () => {
    const planted = readFileSync(MODEL, 'utf8').matchAll(/^#ifdef (\w+) \/\*/gm);
    const bugs = [...planted].map(([, name]) => name);
    const found = Object.keys(FOUND_BY);
    const names = found.map((run) => run.replace(/RETRY | TICKS=3/g, ''));
    expect(bugs.sort()).toEqual(names.sort());
    expect([...documented.keys()].sort()).toEqual([...found, ...SOUND].sort());
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

  it.each(firstOfEach(FOUND_BY))('shows what breaks with %s: %s', async (run, property) => {
    const { errors, violated, states, output } = await verify(MODEL, run.split(' '));
    expect(errors, output).toBe(1);
    expect(violated).toMatch(PROPERTIES[property]);
    expect(states).toBe(documented.get(run));
  });
});
