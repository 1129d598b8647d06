import { afterEach, describe, expect, it } from 'vitest';
import { harnessFile } from '../../../support/package-root.js';
import { killAll, runProcess } from '../../../support/processes.js';
import { isTrimmed } from '../../../support/setup/tiers.js';

// The proof over many ids, in small: threads that take node ids from each other on a real folder, and every
// id looked at.

afterEach(killAll);

async function run(line: string) {
  const command = runProcess(process.execPath, [harnessFile('test/ids/main.ts'), ...line.split(' ')]);
  const { code } = await command.exit;
  const out = command.stdout();
  const figure = (name: string) =>
    Number(new RegExp(`^${name} +([\\d,]+)`, 'm').exec(out)?.[1]?.replaceAll(',', ''));
  return { code, out, err: command.stderr(), figure };
}

describe('unique ids of leases, in threads', () => {
  const [ids, tenures] = isTrimmed ? ['2e7', 40] : ['1e9', 400];

  it(`never repeat, ${ids} of them, however node ids change hands and clocks are stepped`, {
    timeout: 600_000,
  }, async () => {
    const { code, out, err, figure } = await run(`--ids ${ids} --tenures ${tenures}`);
    expect({ code, err }, out).toEqual({ code: 0, err: '' });
    const found = ['ids', 'tenures', 'take-overs', 'in other hands', 'steps of clocks'].map(figure);
    for (const [index, least] of [Number(ids), tenures, 1, 1, 1].entries())
      expect(found[index], out).toBeGreaterThanOrEqual(least);
    for (const fault of ['made before', 'not in order', 'with another node', 'out of range'])
      expect(figure(fault), out).toBe(0);
  });

  it.each(['wall-clock', 'no-bounds'])(
    'would be found to repeat, if they were made with the fault %s',
    async (plant) => {
      const { code, out, err, figure } = await run(`--ids 2e8 --tenures 200 --plant ${plant}`);
      expect({ code, err }, out).toEqual({ code: 1, err: '' });
      expect(figure('made before'), out).toBeGreaterThan(0);
      expect(out).toMatch(/\nREPEATED \d+: [^\n]*\n {2}(?:found in|within) version \d+, thread \d+/);
    },
  );

  it('are not counted for a wrong call, which is answered with one line and exit code 64', async () => {
    const { code, out, err } = await run('--ids many');
    expect({ code, out }).toEqual({ code: 64, out: '' });
    expect(err).toMatch(/^prove:ids: --ids: [^\n]*got "many"\n$/);
  });
});
