import { afterEach, beforeAll, expect, it } from 'vitest';
import { buildHarness } from '../support/harness-build.js';
import { harnessFile } from '../support/package-root.js';
import { killAll, runProcess } from '../support/processes.js';

const SECONDS = process.env.CI === 'true' ? 60 : 10;

beforeAll(buildHarness);
afterEach(killAll);

it(
  `keeps every promise of the engine under every fault, for ${SECONDS} s from a start seed that is new every time`,
  async () => {
    const command = runProcess(process.execPath, [harnessFile('test/simulation/main.ts'), '--seconds', String(SECONDS)]);
    const { code } = await command.exit;
    // The start seed has to be in the log, whatever comes of it.
    process.stderr.write(`${command.stdout()}${command.stderr()}`);
    expect(code, command.stdout()).toBe(0);
    expect(Number(/\nseeds +([\d,]+)\n/.exec(command.stdout())?.[1]?.replaceAll(',', ''))).toBeGreaterThan(SECONDS);
  },
  (SECONDS + 60) * 1_000,
);
