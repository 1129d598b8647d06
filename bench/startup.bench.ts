import { spawnSync } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import { cliFile } from '../test/support/processes.js';
import { median, report } from './report.js';

const ROUNDS = 25;
const BOUND = 3.5;

function timed(args: readonly string[]): number {
  const begun = process.hrtime.bigint();
  const { status, stderr } = spawnSync(process.execPath, args, { stdio: ['ignore', 'ignore', 'pipe'] });
  if (status !== 0) throw new Error(`${args.join(' ')} ended with ${status}: ${stderr}`);
  return Number(process.hrtime.bigint() - begun) / 1e6;
}

it('start-up of `nodelease run` against a bare node', () => {
  const directory = mkdtempSync(join(tmpdir(), 'nodelease-bench-'));
  try {
    const run = [cliFile, 'run', '--log-level', 'warn', '--store', `file:${directory}`, '--', 'true'];
    const bare = ['-e', '0'];
    timed(run);
    timed(bare);
    const times = { run: [] as number[], bare: [] as number[] };
    // In turns, so that whatever else the machine does falls on both.
    for (let round = 0; round < ROUNDS; round += 1) {
      times.bare.push(timed(bare));
      times.run.push(timed(run));
    }
    const ratio = median(times.run) / median(times.bare);
    report(`Start-up, median of ${ROUNDS} runs in turns`, [
      ['node -e 0', `${median(times.bare).toFixed(1)} ms`, '1.00'],
      ['nodelease run --store file:… -- true', `${median(times.run).toFixed(1)} ms`, ratio.toFixed(2)],
      ['bound', '', BOUND.toFixed(2)],
    ]);
    expect(ratio).toBeLessThanOrEqual(BOUND);
  } finally {
    rmSync(directory, { recursive: true });
  }
});
