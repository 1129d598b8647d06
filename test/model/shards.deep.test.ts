import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { packageRoot } from '../support/package-root.js';
import { documentedStates, firstOfEach, verify } from '../support/programs/spin.js';
import { isTrimmed } from '../support/setup/tiers.js';

// docs/design/shards.md says what the models show. A run is what is defined in the model's preprocessor.

/** What does not hold, by how the assertion reads. */
const PROPERTIES = {
  exclusion: /works.*==0/,
  tokens: />last/,
  calm: /calm/,
} as const;

interface Model {
  readonly heading: string;
  /** No violation in any state. */
  readonly sound: readonly string[];
  /** The same with greater bounds, only in the whole tier. */
  readonly large: readonly string[];
  /** What each planted bug has to be found by. */
  readonly foundBy: Readonly<Record<string, keyof typeof PROPERTIES>>;
}

const MODELS: Readonly<Record<string, Model>> = {
  shards: {
    heading: '### Rules T1 to T8',
    sound: ['TENURES=2', 'ANY_TENURES NODES=3', 'ANY_TENURES CALM'],
    large: [
      'TENURES=2 EPOCHS=5',
      'TENURES=2 FUTURE_OWNERS',
      'ANY_TENURES NODES=3 EPOCHS=5',
      'ANY_TENURES SHARDS=2',
      'ANY_TENURES NODES=3 CALM',
    ],
    foundBy: {
      BLIND: 'exclusion',
      BACK: 'tokens',
      TOKEN_KEPT: 'tokens',
      ID_ONLY: 'tokens',
      NO_LEASE: 'tokens',
      NO_BAR: 'tokens',
      BAR_EPOCH: 'tokens',
      'NO_RESEND ANY_TENURES CALM': 'calm',
      HAND_ON_RUNNING: 'exclusion',
      NO_PROOF: 'exclusion',
      SAME_VERSION: 'exclusion',
      LOWER_VERSION: 'exclusion',
      TOMBSTONE: 'exclusion',
      WORK_CONTINUES: 'exclusion',
    },
  },
  'shards-repair': {
    heading: '### Rule T10',
    sound: ['EPOCHS=2', 'BEGUN', 'BEGUN CALM EPOCHS=2', 'CALM EPOCHS=2 SERIES=1'],
    large: [
      'EPOCHS=3',
      'BEGUN COPIES',
      'BEGUN NODES=3',
      'BEGUN SERIES=3 DAMAGES=2 EPOCHS=2',
      'CALM EPOCHS=2',
      'BEGUN COPIES CALM EPOCHS=2',
    ],
    foundBy: {
      GIVE_EARLY: 'exclusion',
      'ABSENT_BEGINS BEGUN': 'tokens',
      NO_FLOOR: 'exclusion',
      'BACK BEGUN COPIES': 'tokens',
      'PUBLISHED BEGUN': 'tokens',
      'NO_FREEZE BEGUN': 'exclusion',
      'NO_WAIT BEGUN': 'exclusion',
      'MARK_LATE BEGUN': 'exclusion',
      'SHOW_EARLY BEGUN': 'exclusion',
      'LEAVE_EARLY BEGUN': 'exclusion',
      'KEEP_RUNNING BEGUN CALM EPOCHS=2': 'calm',
      SENT_TWICE: 'exclusion',
      'RESUME BEGUN COPIES': 'tokens',
      'OLD_CONTENT BEGUN COPIES': 'exclusion',
    },
  },
};

const page = readFileSync(join(packageRoot, 'docs/design/shards.md'), 'utf8');
/** From one heading to the next of any level. */
const section = (text: string, heading: string, next: RegExp) =>
  (text.split(heading)[1] ?? '').split(next)[0] ?? '';

describe.each(Object.entries(MODELS))(
  'the model of %s',
  { timeout: 900_000 },
  (file, { heading, sound, large, foundBy }) => {
    const model = join(packageRoot, `test/model/${file}.pml`);
    const documented = documentedStates(section(page, heading, /^#/m));

    it('is documented with each run, and with each planted bug that it has', () => {
      const planted = section(readFileSync(model, 'utf8'), '/* ---- The planted bugs', /^\/\* ----/m);
      const bugs = [...planted.matchAll(/^#(?:ifdef|elif defined)[ (](\w+)\)? \/\*/gm)].map(
        ([, name]) => name,
      );
      const found = Object.keys(foundBy);
      expect(bugs.sort()).toEqual(found.map((defines) => defines.split(' ')[0]).sort());
      expect([...documented.keys()].sort()).toEqual([...sound, ...large, ...found].sort());
    });

    it.each(isTrimmed ? sound : [...sound, ...large])(
      'keeps its promises in every state: %s',
      async (run) => {
        const { output, ...found } = await verify(model, run.split(' '));
        expect(found, output).toMatchObject({
          complete: true,
          errors: 0,
          violated: undefined,
          states: documented.get(run),
        });
      },
    );

    it.each(firstOfEach(foundBy))('shows what breaks with %s: %s', async (run, property) => {
      const { errors, violated, states, output } = await verify(model, run.split(' '));
      expect(errors, output).toBe(1);
      expect(violated).toMatch(PROPERTIES[property]);
      expect(states).toBe(documented.get(run));
    });
  },
);
