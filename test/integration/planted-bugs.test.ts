import { afterEach, beforeAll, describe, expect, it } from 'vitest';
import { PLANTS } from '../simulation/plants.js';
import { buildHarness } from '../support/harness-build.js';
import { harnessFile } from '../support/package-root.js';
import { killAll, runProcess } from '../support/processes.js';

// A proof that cannot fail proves nothing. Each of these copies of the engine has one mistake; the same seeds find none in the engine itself.

const MOST_SEEDS = 20_000;

/** What each mistake breaks first; a violation of another promise would mean that the simulator looks at the wrong thing. */
const FOUND_BY: Readonly<Record<string, readonly string[]>> = {
  aba: ['fencing'],
  'deadline-from-response': ['exclusion', 'deadline'],
  'wall-clock-expiry': ['exclusion'],
  'no-read-back': ['own-writes'],
  'sdk-retry': ['own-writes'],
  'delete-on-release': ['objects'],
  'no-grace': ['exclusion'],
  'timer-validity': ['exclusion', 'deadline'],
  'optimistic-age': ['exclusion'],
  'own-settings': ['exclusion'],
  'newest-write': ['exclusion', 'deadline'],
  'evict-at-once': ['exclusion'],
  'late-deadline': ['deadline'],
  'adopts-refused': ['deadline', 'own-writes'],
  'deaf-supervisor': ['deadline'],
  'evict-no-bump': ['fencing'],
  'never-expires': ['liveness'],
  'task-id-only': ['exclusion', 'fencing', 'deadline'],
  'wall-clock-ids': ['ids'],
  'stamps-past-timestamp': ['ids'],
  'stamps-before-tenure': ['ids'],
  'forgets-stamps': ['ids'],
  'ignores-widening': ['ids'],
  'publishes-before-adopting': ['ids'],
  'stale-width': ['ids'],
  'scale-without-waiting': ['ids'],
  'no-id-floor': ['ids'],
  'delete-on-scale-down': ['objects'],
  'retired-acquirable': ['retirement'],
  'retire-frees-at-once': ['exclusion'],
  'retires-one-too-many': ['survivors'],
  'impatient-retirement': ['survivors'],
  'untold-holder': ['retirement'],
  'never-revived': ['liveness'],
  'first-page-is-all': ['errors'],
};

interface Report {
  readonly violation: { readonly seed: number; readonly invariant: string } | null;
}

beforeAll(buildHarness);
afterEach(killAll);

async function simulate(options: readonly string[]): Promise<{ code: number | null; report: Report }> {
  const main = harnessFile('test/simulation/main.ts');
  const command = runProcess(process.execPath, ['--max-semi-space-size=64', main, '--from', '0', '--json', '--no-shrink', ...options]);
  const { code } = await command.exit;
  return { code, report: JSON.parse(command.stdout() || `{"stderr":${JSON.stringify(command.stderr())}}`) as Report };
}

describe('the simulator', () => {
  it('knows what every planted bug has to be found by', () => {
    expect(PLANTS.map(({ name }) => name).sort()).toEqual(Object.keys(FOUND_BY).sort());
  });

  it.each(PLANTS.map(({ name, breaks }) => [name, breaks] as const))(
    `finds %s within ${MOST_SEEDS} seeds: %s`,
    { timeout: 600_000 },
    async (name) => {
      const { code, report } = await simulate(['--plant', name, '--seeds', String(MOST_SEEDS)]);
      expect(report.violation, JSON.stringify(report)).toBeTruthy();
      expect(FOUND_BY[name]).toContain(report.violation?.invariant);
      expect(code).toBe(1);
    },
  );
});
