import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { packageRoot } from '../support/package-root.js';
import { verify } from '../support/programs/spin.js';
import { believesIn } from './lease-model.js';
import { boundsInTicks, countStates } from './lease-states.js';

const MODEL = join(packageRoot, 'test/model/lease.pml');

describe('the executable copy of the model', { timeout: 600_000 }, () => {
  it.each([
    ['DURATION=2', boundsInTicks([2])],
    ['DURATION=2 EACH_LATE', boundsInTicks([2], 'one of each task')],
    ['DURATION=2 SHORT=1 TUNED', boundsInTicks([1, 2])],
    ['SOUND', boundsInTicks([3])],
  ])('has as many states as SPIN finds: %s', async (defines, bounds) => {
    const { complete, errors, states } = await verify(MODEL, defines.split(' '));
    expect({ complete, errors }).toEqual({ complete: true, errors: 0 });
    expect(countStates(bounds)).toBe(states);
  });

  it('has one holder at a time in each of them', () => {
    let held = 0;
    countStates(boundsInTicks([2]), (state) => {
      const holders = state.tasks.filter(believesIn);
      expect(holders.length).toBeLessThan(2);
      held += holders.length;
    });
    expect(held).toBeGreaterThan(0);
  });
});
