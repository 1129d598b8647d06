import { setTimeout as sleep } from 'node:timers/promises';
import { afterEach, describe, expect, it } from 'vitest';
import { cliFile, killAll } from '../../support/processes.js';
import { asProcess1, childrenOf, outside } from './run-support.js';

afterEach(killAll);

/** Makes five orphans that end, and says how many of them were not collected. */
const ORPHANS = `
for i in 1 2 3 4 5; do sh -c 'sleep 0.1 & exit'; done
sleep 1
set -- $(grep -l '^State:.Z' /proc/[0-9]*/status 2>/dev/null)
echo "zombies: $#"
`;

describe('nodelease as process 1 of a container', () => {
  it('collects the orphans of its command', async () => {
    const run = asProcess1([cliFile, 'run', '--node-id', '3', '--', 'sh', '-c', ORPHANS]);
    const end = await run.exit;
    expect(run.stdout(), run.stderr()).toBe('zombies: 0\n');
    expect(end.code).toBe(0);
  });

  it('would not collect them without the shell that its file starts in, and says so', async () => {
    const run = asProcess1([process.execPath, cliFile, 'run', '--node-id', '3', '--', 'sh', '-c', ORPHANS]);
    await run.exit;
    expect(run.stdout(), run.stderr()).toBe('zombies: 5\n');
    expect(run.stderr()).toMatch(/node as process 1 collects no orphaned processes/);
  });

  it('keeps the exit code and standard input', async () => {
    const run = asProcess1([cliFile, 'run', '--node-id', '3', '--', 'sh', '-c', 'cat; exit 7'], { stdin: 'input' });
    expect((await run.exit).code, run.stderr()).toBe(7);
    expect(run.stdout()).toBe('input');
  });

  it.each(['TERM', 'INT', 'HUP', 'QUIT', 'USR1', 'USR2'] as const)('hands SIG%s on', async (signal) => {
    const script = `trap 'echo got ${signal}; exit 9' ${signal}; echo ready; while :; do sleep 0.05; done`;
    const run = asProcess1([cliFile, 'run', '--node-id', '3', '--', 'sh', '-c', script]);
    await run.waitForOutput(/ready/);
    process.kill(outside(run), `SIG${signal}`);
    expect((await run.exit).code, run.stderr()).toBe(9);
    expect(run.stdout()).toBe(`ready\ngot ${signal}\n`);
  });

  it('ends at a signal that comes before there is a command to have it', async () => {
    const run = asProcess1([cliFile, 'run', '--node-id', '3', '--', 'sleep', '100']);
    let code: number | null | undefined;
    const ended = run.exit.then((end) => {
      code = end.code;
    });
    // Until the shell has set its traps the kernel keeps signals from process 1, so one may have to be sent again.
    while (code === undefined) {
      const [first] = childrenOf(run.pid);
      if (first !== undefined) process.kill(first, 'SIGTERM');
      await Promise.race([ended, sleep(20)]);
    }
    expect(code, run.stderr()).toBe(143);
  });
});
