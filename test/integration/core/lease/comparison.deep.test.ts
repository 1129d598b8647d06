import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import { COMPARED_FAULTS } from '../../../simulation/comparison/compared-faults.js';
import { type Cell, compareUnder } from '../../../simulation/comparison/comparison-cell.js';
import { ENGINES } from '../../../simulation/engines.js';
import { useQuickAbort } from '../../../simulation/world/quick-abort.js';
import { harnessFile } from '../../../support/package-root.js';
import { killAll, runProcess } from '../../../support/processes.js';

/**
 * What breaks for an engine in the first seeds with that fault, the rows being those of the table in the
 * documentation.
 */
async function brokenFor(
  engine: keyof typeof ENGINES,
  fault: string,
  seeds: number,
): Promise<readonly string[]> {
  const faults = COMPARED_FAULTS.find(({ name }) => name === fault);
  const simulated = ENGINES[engine];
  if (faults === undefined || simulated === undefined)
    throw new Error(`there is no ${fault} or no ${engine}`);
  const cell: Cell = await compareUnder(faults, simulated, { from: 0, seeds });
  expect(cell.seeds).toBe(seeds);
  return cell.broken.map(({ invariant }) => invariant);
}

describe('in the same seeds', () => {
  let undo: (() => void) | undefined;
  beforeAll(() => {
    undo = useQuickAbort();
  });
  afterAll(() => undo?.());

  it.each(['clock-offset', 'clock-step'])(
    'wall clocks that are wrong (%s) give one id to two tasks of the plain protocol, never of this engine',
    async (fault) => {
      expect(await brokenFor('plain-kept-version', fault, 20)).toContain('exclusion');
      expect(await brokenFor('shipped', fault, 20)).toEqual([]);
    },
  );

  it('a release to the letter of the plain protocol gives versions out again, one of this engine never', async () => {
    expect(await brokenFor('plain', 'none: tasks come and go', 20)).toEqual(['fencing']);
    expect(await brokenFor('shipped', 'none: tasks come and go', 20)).toEqual([]);
  });

  it('a request that arrives late meets the etag of an empty object again where a release empties it, and takes a version twice', async () => {
    expect(await brokenFor('plain-kept-version', 'request-lost', 200)).toContain('fencing');
    expect(await brokenFor('shipped', 'request-lost', 200)).toEqual([]);
  });

  it('a lost reply costs a task of the plain protocol its own lease, and one of this engine nothing', async () => {
    expect(await brokenFor('plain-kept-version', 'response-lost', 20)).toContain('own-writes');
    expect(await brokenFor('shipped', 'response-lost', 20)).toEqual([]);
  });

  it('the plain protocol keeps its promises where its assumptions hold: what breaks it are the faults, not how it was written down', async () => {
    for (const fault of ['none: tasks come and go', 'crash', 'clock-drift', 'store-skew', 'same-task-id']) {
      expect(await brokenFor('plain-kept-version', fault, 20), fault).toEqual([]);
    }
  });
});

describe('the command that compares', () => {
  afterEach(killAll);

  const compare = (...args: string[]) =>
    runProcess(process.execPath, [harnessFile('test/simulation/comparison.ts'), ...args]);

  it('prints a table of all engines, the one without store time among them, that depends only on the seeds', async () => {
    const one = compare('--seeds', '4', '--from', '50', '--jobs', '1');
    const two = compare('--seeds', '4', '--from', '50', '--jobs', '3');
    expect(await one.exit).toEqual({ code: 0, signal: null });
    const rows = one
      .stdout()
      .split('\n')
      .filter((line) => line.startsWith('| '));
    expect(rows).toHaveLength(2 + COMPARED_FAULTS.length);
    expect(rows.every((row) => row.endsWith(' holds |') || rows.indexOf(row) < 2)).toBe(true);
    expect(rows.find((row) => row.startsWith('| clock-offset |'))).toMatch(
      /\| \*\*exclusion \d+ %\*\* \| holds \|$/,
    );
    expect(rows.find((row) => row.startsWith('| all, but hosts with right clocks |'))).toMatch(
      /\| holds \| holds \|$/,
    );
    expect(one.stdout()).toMatch(
      /\n- plain protocol, to the letter, clock-offset: exclusion in \d of 4 seeds, first in seed \d+: node id /,
    );
    await two.exit;
    expect(two.stdout()).toBe(one.stdout());
  });

  it.each([
    [['--seeds', 'many'], '--seeds: expected a whole number from 1 to 1000000, got "many"'],
    [['--sees', '5'], "Unknown option '--sees'"],
    [['--from', ''], '--from: expected a whole number from 0 to 2147483648, got ""'],
  ])('refuses %j and says why', async (args, reason) => {
    const refused = compare(...args);
    expect((await refused.exit).code).toBe(64);
    expect(refused.stderr()).toContain(`comparison: ${reason}`);
    expect(refused.stdout()).toBe('');
  });
});
