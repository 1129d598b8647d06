import { readFileSync } from 'node:fs';
import { setTimeout as sleep } from 'node:timers/promises';
import { expect, inject, it } from 'vitest';
import { fleetStore, startTask } from '../test/support/fleet.js';
import { killAll, runProcess } from '../test/support/processes.js';
import { median, report } from './report.js';

const BOUND_MIB = 100;
const SAMPLES = 20;

/** The resident set of a process, in MiB. */
function residentMib(pid: number): number {
  const kib = /^VmRSS:\s+(\d+) kB$/m.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))?.[1];
  return Number(kib) / 1024;
}

it('steady memory of the supervisor on S3 against a bare node', async () => {
  const store = await fleetStore('s3', inject('s3'));
  try {
    const bare = runProcess(process.execPath, ['-e', 'setInterval(() => {}, 1000)']);
    // The shortest lease renews three times a second: a minute of it stands for a quarter of an hour at the
    // default.
    const task = startTask(store, ['--nodes', '4', '--duration', '1s']);
    await task.started();
    await sleep(40_000);
    const samples = { bare: [] as number[], supervisor: [] as number[] };
    for (let i = 0; i < SAMPLES; i += 1) {
      samples.bare.push(residentMib(bare.pid));
      samples.supervisor.push(residentMib(task.pid));
      await sleep(1_000);
    }
    const [floor, used] = [median(samples.bare), median(samples.supervisor)];
    report('Resident memory after 40 s and some 120 renewals, median of 20 samples', [
      ['node, idle', `${floor.toFixed(1)} MiB`, '1.00'],
      ['nodelease run on S3', `${used.toFixed(1)} MiB`, (used / floor).toFixed(2)],
      ['bound', `${BOUND_MIB} MiB`, ''],
    ]);
    expect(used).toBeLessThanOrEqual(BOUND_MIB);
  } finally {
    await killAll();
  }
}, 180_000);
