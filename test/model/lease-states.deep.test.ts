import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { packageRoot } from '../support/package-root.js';
import { verify } from '../support/programs/spin.js';
import { isTrimmed } from '../support/setup/tiers.js';
import { believesIn } from './lease-model.js';
import { boundsInTicks, countStates } from './lease-states.js';

const MODEL = join(packageRoot, 'test/model/lease.pml');

/** What is defined in the model's preprocessor, and the same bounds of the copy. */
const VARIANTS = [
  ['DURATION=1', boundsInTicks([1])],
  ['DURATION=2', boundsInTicks([2])],
  ['DURATION=2 EACH_LATE', boundsInTicks([2], 'one of each task')],
  ['DURATION=2 SHORT=1 TUNED', boundsInTicks([1, 2])],
  ['SOUND', boundsInTicks([3])],
] as const;

describe('the executable copy of the model', { timeout: 600_000 }, () => {
  it.each(isTrimmed ? VARIANTS.slice(0, 1) : VARIANTS)(
    'has as many states as SPIN finds, and one holder at a time in each: %s',
    async (defines, bounds) => {
      let most = 0;
      const states = countStates(bounds, ({ tasks }) => {
        most = Math.max(most, tasks.filter(believesIn).length);
      });
      const found = await verify(MODEL, defines.split(' '));
      expect(found).toMatchObject({ complete: true, errors: 0, states });
      expect(most).toBe(1);
    },
  );
});
