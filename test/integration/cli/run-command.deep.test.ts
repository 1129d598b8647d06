import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterEach, describe, expect, it } from 'vitest';
import { killAll } from '../../support/processes.js';
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
});
