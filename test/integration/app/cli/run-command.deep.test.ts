import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterEach, describe, expect, inject, it } from 'vitest';
import { fleetStore } from '../../../support/fleet.js';
import { killAll, runCli } from '../../../support/processes.js';
import { newFolder, numbers, removeFolders, shell, untilDead } from './run-support.js';

afterEach(async () => {
  await killAll();
  removeFolders();
});

describe('nodelease run', () => {
  it('kills what the command leaves behind that does not end at SIGTERM, and only then releases the node id', async () => {
    const folder = newFolder();
    // Ignored from before it begins, so that there is no moment in which SIGTERM ends it.
    const stubborn = `trap "" TERM; sh -c 'echo $$; while :; do sleep 0.05; done' & trap - TERM;`;
    const run = shell(`${stubborn} sleep 0.2; exit 4`, '--store', `file:${folder}`, '--nodes', '1');
    await run.waitForOutput(/\d+\n/);
    const left = numbers(run.stdout());
    await run.waitForOutput(/left processes behind/);
    expect(JSON.parse(readFileSync(join(folder, '0.json'), 'utf8'))).toHaveProperty('taskId');
    expect((await run.exit).code).toBe(4);
    await untilDead(left, 0);
    expect(run.stderr()).toMatch(/lease released/);
  });

  it('needs less than 70 MiB on S3 before its command begins, and 115 where it is the first and probes the store', async () => {
    const { options, env } = await fleetStore('s3', inject('s3'));
    const peakMiB = async () => {
      const peak = ['sh', '-c', 'grep VmHWM /proc/$PPID/status'];
      const run = runCli(['run', '--nodes', '1', ...options, '--', ...peak], { env });
      expect((await run.exit).code, run.stderr()).toBe(0);
      const mib = Number(/VmHWM:\s+(\d+) kB/.exec(run.stdout())?.[1]) / 1024;
      expect(mib).toBeGreaterThan(40);
      return { mib, isFirst: run.stderr().includes('cluster-created') };
    };
    const [first, next] = [await peakMiB(), await peakMiB()];
    expect([first.isFirst, next.isFirst]).toEqual([true, false]);
    expect(first.mib).toBeLessThan(115);
    expect(next.mib).toBeLessThan(70);
  });
});
