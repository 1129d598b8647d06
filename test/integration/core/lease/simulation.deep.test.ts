import { afterEach, expect, it } from 'vitest';
import { harnessFile } from '../../../support/package-root.js';
import { killAll, runProcess } from '../../../support/processes.js';
import { isTrimmed } from '../../../support/setup/tiers.js';

const SECONDS = isTrimmed ? 20 : 120;

afterEach(killAll);

/**
 * @param least how many seeds there have to be, on a machine that has nothing else to do; by its processor's
 * time otherwise
 */
async function simulate(seconds: number, least: number, ...more: string[]): Promise<void> {
  const main = harnessFile('test/simulation/main.ts');
  const command = runProcess(process.execPath, [main, '--seconds', String(seconds), ...more]);
  const { code } = await command.exit;
  // The start seed has to be in the log, whatever comes of it.
  process.stderr.write(`${command.stdout()}${command.stderr()}`);
  expect(code, command.stdout()).toBe(0);
  const figure = (name: string) =>
    Number(new RegExp(`\n${name} +([\\d,.]+)\n`).exec(command.stdout())?.[1]?.replaceAll(',', ''));
  expect(figure('seeds')).toBeGreaterThan(0);
  expect(figure('seeds') / Math.min(figure('CPU seconds'), seconds)).toBeGreaterThan(least / seconds);
}

it(
  `keeps every promise of the engine, and to the model, under every fault, for ${SECONDS} s from a start seed that is new every time`,
  () => simulate(SECONDS, SECONDS, '--traces'),
  (SECONDS + 60) * 1_000,
);

it(
  `keeps them on a store that reports no time of writing, for ${SECONDS / 2} s`,
  () => simulate(SECONDS / 2, SECONDS / 2, '--engine', 'observed'),
  (SECONDS / 2 + 60) * 1_000,
);

it(
  `keeps them where tasks have sticky keys, some of them the same, for ${SECONDS / 4} s`,
  () => simulate(SECONDS / 4, SECONDS / 4, '--engine', 'sticky'),
  (SECONDS / 4 + 60) * 1_000,
);

it(
  `keeps those of shards as well, for ${SECONDS / 2} s`,
  () => simulate(SECONDS / 2, SECONDS / 2, '--engine', 'shards', '--traces'),
  (SECONDS / 2 + 60) * 1_000,
);

it(
  `keeps those of the recipes on ZooKeeper, for ${SECONDS / 2} s`,
  () => simulate(SECONDS / 2, SECONDS / 2, '--engine', 'recipes'),
  (SECONDS / 2 + 60) * 1_000,
);

it(
  `keeps them with 64 hosts while operators grow and shrink the cluster, for ${SECONDS / 2} s`,
  () => simulate(SECONDS / 2, SECONDS / 8, '--hosts', '64', '--ids', '24'),
  (SECONDS / 2 + 60) * 1_000,
);
