import { afterEach, expect, it } from 'vitest';
import { harnessFile } from '../../../support/package-root.js';
import { killAll, runProcess } from '../../../support/processes.js';
import { isTrimmed } from '../../../support/setup/tiers.js';

const SECONDS = isTrimmed ? 20 : 120;

afterEach(killAll);

/** Ends well only if at least one seed was run to its end, however slow the machine is. */
async function simulate(seconds: number, ...more: string[]): Promise<void> {
  const main = harnessFile('test/simulation/main.ts');
  const command = runProcess(process.execPath, [main, '--seconds', String(seconds), ...more]);
  const { code } = await command.exit;
  // The start seed has to be in the log, whatever comes of it.
  process.stderr.write(`${command.stdout()}${command.stderr()}`);
  expect(code, command.stdout()).toBe(0);
  const seeds = /\nseeds +([\d,]+)\n/.exec(command.stdout())?.[1];
  expect(Number(seeds?.replaceAll(',', ''))).toBeGreaterThan(0);
}

it(`keeps every promise of the engine, and to the model, under every fault, for ${SECONDS} s from a start seed that is new every time`, () =>
  simulate(SECONDS, '--traces'));

it(`keeps them on a store that reports no time of writing, for ${SECONDS / 2} s`, () =>
  simulate(SECONDS / 2, '--engine', 'observed'));

it(`keeps them where tasks have sticky keys, some of them the same, for ${SECONDS / 4} s`, () =>
  simulate(SECONDS / 4, '--engine', 'sticky'));

it(`keeps those of shards as well, for ${SECONDS / 2} s`, () =>
  simulate(SECONDS / 2, '--engine', 'shards', '--traces'));

it(`keeps those of the recipes on ZooKeeper, for ${SECONDS / 2} s`, () =>
  simulate(SECONDS / 2, '--engine', 'recipes'));

it(`keeps them with 64 hosts while operators grow and shrink the cluster, for ${SECONDS / 2} s`, () =>
  simulate(SECONDS / 2, '--hosts', '64', '--ids', '24'));
