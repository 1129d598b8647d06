import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterEach, describe, expect, it } from 'vitest';
import { ALL_PLANTS } from '../../../simulation/all-plants.js';
import { MUSEUM } from '../../../simulation/museum.js';
import { MUSEUM_PLANTS } from '../../../simulation/museum-plants.js';
import { PATH_PLANTS } from '../../../simulation/path-plants.js';
import { SHARD_PATH_PLANTS } from '../../../simulation/shard-path-plants.js';
import { harnessFile, packageRoot } from '../../../support/package-root.js';
import { killAll, runProcess } from '../../../support/processes.js';
import { isTrimmed } from '../../../support/setup/tiers.js';

// A proof that cannot fail proves nothing. Each of these copies of the engine has one mistake; the same seeds
// find none in the engine itself.

const MOST_SEEDS = 20_000;

/**
 * What each mistake breaks first; a violation of another promise would mean that the simulator looks at the
 * wrong thing.
 */
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
  revived: ['deadline'],
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
  'key-is-a-right': ['exclusion', 'fencing', 'deadline'],
  'history-without-evictions': ['history'],
  // Where the times change.
  'shorter-at-once': ['deadline', 'exclusion'],
  'longer-once-read': ['deadline', 'exclusion'],
  'rounded-down': ['deadline'],
  'half-of-the-rest': ['deadline', 'exclusion'],
  'read-back-clears': ['deadline', 'exclusion'],
  'newest-bound': ['deadline', 'exclusion'],
  'refusal-clears': ['deadline', 'exclusion'],
  'takes-by-settings': ['exclusion'],
  'forgets-the-longest': ['times'],
  // They keep every promise, and leave the model.
  ...Object.fromEntries([...PATH_PLANTS, ...SHARD_PATH_PLANTS].map(({ name }) => [name, ['path']])),
  // On a store that goes back.
  'epoch-without-waiting': ['exclusion', 'fencing'],
  'free-ids-at-once': ['exclusion', 'fencing'],
  'one-look-at-the-epoch': ['exclusion', 'fencing'],
  'proof-in-another-epoch': ['errors'],
  'probe-in-another-epoch': ['errors'],
  'next-version': ['fencing'],
  'leap-by-number': ['fencing'],
  'generation-kept': ['liveness'],
  'older-is-lost': ['own-writes'],
  'older-counts-anew': ['deadline'],
  // On a store that reports no time of writing.
  'age-from-request': ['age', 'exclusion'],
  'age-from-reply': ['age'],
  'age-of-the-key': ['age', 'exclusion'],
  'repeating-etag': ['age', 'exclusion', 'fencing'],
  'standing-clock': ['exclusion', 'deadline'],
  // In the ownership of shards. An owner reports itself that a shard which it runs was taken (T8): errors.
  'blind-map': ['shards'],
  'map-goes-back': ['shards'],
  'token-kept': ['shards'],
  'owner-by-id': ['shards', 'errors'],
  'token-started-again': ['shards'],
  'handed-on-running': ['shards', 'errors'],
  'handed-on-once': ['liveness'],
  'doubt-is-proof': ['shards', 'errors'],
  'same-version-is-proof': ['shards', 'errors'],
  'eviction-is-proof': ['shards'],
  'work-goes-on': ['shards'],
  'takes-no-notice': ['liveness', 'shards'],
  'repair-without-waiting': ['shards'],
  'start-without-lease': ['shards'],
  'released-running': ['shards'],
  'mark-removed-early': ['shards'],
  'shows-early': ['shards'],
  'black-hole': ['liveness'],
  'hang-given-up': ['shards'],
  'no-look': ['liveness'],
  'hands-on-at-signal': ['shards'],
  'old-map-followed': ['shards', 'errors', 'liveness'],
  'series-kept': ['shards', 'errors'],
  'lost-map-begins': ['shards', 'errors'],
  'repair-unsettled': ['shards', 'errors'],
  'lost-epoch-kept': ['liveness'],
  // In the recipes.
  'watch-all-children': ['watches'],
  'delete-once': ['liveness', 'orphan'],
  'orphan-after-lost-reply': ['liveness', 'orphan'],
  'not-discarded': ['liveness', 'orphan'],
  'stale-ready': ['barrier'],
  'timer-validity-of-locks': ['deadline', 'exclusion'],
  'validity-from-reply': ['deadline', 'exclusion'],
  'relay-forgotten': ['deadline', 'exclusion'],
  'heartbeat-by-read': ['deadline', 'exclusion'],
  'deleted-on-loss': ['exclusion'],
  'reader-ignores-writers': ['exclusion', 'token'],
  'downgrade-behind-writers': ['exclusion', 'token'],
  'one-lease-too-many': ['exclusion'],
  'session-blind': ['liveness', 'orphan'],
  'open-gate': ['barrier'],
  'unheard-addition': ['counter'],
  'one-vote-for-all': ['transaction'],
  'item-taken-twice': ['queue'],
  'broken-chain': ['shared-data'],
  'entry-of-another': ['liveness'],
  'condition-unread': ['shared-data'],
  'version-without-creation': ['shared-data', 'liveness'],
};

interface Report {
  readonly violation: { readonly seed: number; readonly invariant: string } | null;
}

afterEach(killAll);

async function simulate(options: readonly string[]): Promise<{ code: number | null; report: Report }> {
  const main = harnessFile('test/simulation/main.ts');
  const command = runProcess(process.execPath, [
    '--max-semi-space-size=64',
    main,
    '--json',
    '--no-shrink',
    ...options,
  ]);
  const { code } = await command.exit;
  return {
    code,
    report: JSON.parse(command.stdout() || `{"stderr":${JSON.stringify(command.stderr())}}`) as Report,
  };
}

/** The first violating seed of each plant, as docs/design/simulation.md lists it. */
function documentedSeeds(): ReadonlyMap<string, number> {
  const page = readFileSync(join(packageRoot, 'docs/design/simulation.md'), 'utf8');
  const rows = page.matchAll(/^\| `([\w-]+)` \|.*\| ([\d,]+) \|$/gm);
  return new Map([...rows].map(([, name = '', seed = '']) => [name, Number(seed.replaceAll(',', ''))]));
}

const seeds = documentedSeeds();

/** In the trimmed tier by the documented seed alone: that there is none before it takes minutes to show. */
async function expectFound(
  name: string,
  documented: number,
  foundBy: readonly string[] | undefined,
): Promise<void> {
  const range = isTrimmed
    ? ['--from', String(documented), '--seeds', '1', '--jobs', '1']
    : ['--from', '0', '--seeds', String(MOST_SEEDS)];
  const traces = foundBy?.includes('path') ? ['--traces'] : [];
  const { code, report } = await simulate(['--plant', name, ...traces, ...range]);
  expect(report.violation, JSON.stringify(report)).toBeTruthy();
  expect(foundBy).toContain(report.violation?.invariant);
  expect(report.violation?.seed).toBe(documented);
  expect(code).toBe(1);
}

describe('the simulator', () => {
  it('knows what every planted bug has to be found by, and the documentation knows its seed', () => {
    const names = ALL_PLANTS.map(({ name }) => name).sort();
    expect(names).toEqual(Object.keys(FOUND_BY).sort());
    expect([...seeds.keys()].sort()).toEqual(names);
  });

  it.each(ALL_PLANTS.map(({ name, breaks }) => [name, breaks] as const))(
    'finds %s in its documented seed: %s',
    { timeout: 1_800_000 },
    (name) => expectFound(name, seeds.get(name) ?? Number.NaN, FOUND_BY[name]),
  );

  it.each(MUSEUM_PLANTS.map(({ name, breaks }) => [name, breaks] as const))(
    'finds %s, a bug of another project, in its documented seed: %s',
    { timeout: 1_800_000 },
    async (name) => {
      const { seed, foundBy } = MUSEUM.find(({ plant }) => plant === name) ?? {};
      await expectFound(name, seed ?? Number.NaN, [foundBy ?? '']);
    },
  );

  it.each(isTrimmed ? [] : [...PATH_PLANTS, ...SHARD_PATH_PLANTS].map(({ name }) => name))(
    'finds nothing but that %s leaves the model',
    { timeout: 1_800_000 },
    async (name) => {
      const { report } = await simulate(['--plant', name, '--from', '0', '--seeds', '300']);
      expect(report.violation).toBeUndefined();
    },
  );
});
