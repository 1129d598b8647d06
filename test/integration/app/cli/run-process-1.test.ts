import { setTimeout as sleep } from 'node:timers/promises';
import { afterEach, describe, expect, it } from 'vitest';
import { childHandles } from '../../../support/process-handle.js';
import { cliFile, killAll, runProcess } from '../../../support/processes.js';
import { asProcess1, outside } from './run-support.js';

afterEach(killAll);

/**
 * Makes five orphans, and says how many of them were not collected, once all have ended and that is as
 * expected, or has not become so.
 */
const orphans = (expected: number) => `
for i in 1 2 3 4 5; do sh -c 'sleep 0.1 & exit'; done
count() { set -- $(grep -l "$1" /proc/[0-9]*/status 2>/dev/null); echo $#; }
atWork() { for each in $(grep -l '^Name:.sleep' /proc/[0-9]*/status 2>/dev/null); do grep '^State:.[^Z]' $each 2>/dev/null; done; }
while [ -n "$(atWork)" ]; do :; done
for try in $(seq 100); do [ "$(count '^State:.Z')" = ${expected} ] && break; sleep 0.1; done
echo "zombies: $(count '^State:.Z')"
`;

describe('nodelease as process 1 of a container', () => {
  it('collects the orphans of its command', async () => {
    const run = asProcess1([cliFile, 'run', '--node-id', '3', '--', 'sh', '-c', orphans(0)]);
    const end = await run.exit;
    expect(run.stdout(), run.stderr()).toBe('zombies: 0\n');
    expect(end.code).toBe(0);
  });

  it('would not collect them without the shell that its file starts in, and says so', async () => {
    const run = asProcess1([
      process.execPath,
      cliFile,
      'run',
      '--node-id',
      '3',
      '--',
      'sh',
      '-c',
      orphans(5),
    ]);
    await run.exit;
    expect(run.stdout(), run.stderr()).toBe('zombies: 5\n');
    expect(run.stderr()).toMatch(/node as process 1 collects no orphaned processes/);
  });

  it('keeps the exit code and standard input', async () => {
    const run = asProcess1([cliFile, 'run', '--node-id', '3', '--', 'sh', '-c', 'cat; exit 7'], {
      stdin: 'input',
    });
    expect((await run.exit).code, run.stderr()).toBe(7);
    expect(run.stdout()).toBe('input');
  });

  it.each([
    ['process 1', asProcess1],
    [
      'any other',
      ([file = '', ...args]: readonly string[], options: object) => runProcess(file, args, options),
    ],
  ])('hands down variables that no shell can have, as %s', async (_, start) => {
    const env = { 'a.b': '1=2\n3', 'c-d': '', '9e': 'ü', plain: 'yes' };
    const script = `JSON.stringify(${JSON.stringify([...Object.keys(env), 'NODELEASE_ENVIRON'])}.map((name) => process.env[name]))`;
    const run = start([cliFile, 'run', '--node-id', '3', '--', process.execPath, '-p', script], { env });
    await run.exit;
    expect(JSON.parse(run.stdout()), run.stderr()).toEqual([...Object.values(env), null]);
  });

  it('starts, too, where such variables are longer together than one may be', async () => {
    const long = 'x'.repeat(70_000);
    const words = [cliFile, 'run', '--node-id', '3', '--', 'true'];
    const run = asProcess1(words, { env: { 'a.b': long, 'c.d': long } });
    expect(await run.exit, run.stderr()).toMatchObject({ code: 0 });
  });

  it('hands SIGINT, SIGHUP, SIGQUIT, SIGUSR1, SIGUSR2 and SIGTERM on', async () => {
    const signals = ['INT', 'HUP', 'QUIT', 'USR1', 'USR2', 'TERM'] as const;
    const traps = signals
      .map((signal) => `trap 'echo got ${signal}${signal === 'TERM' ? '; exit 9' : ''}' ${signal}`)
      .join('\n');
    const run = asProcess1([
      ...[cliFile, 'run', '--node-id', '3', '--', 'sh', '-c'],
      `${traps}\necho ready; while :; do sleep 0.05; done`,
    ]);
    await run.waitForOutput(/ready/);
    for (const signal of signals) {
      process.kill(outside(run), `SIG${signal}`);
      await run.waitForOutput(new RegExp(`got ${signal}\n`));
    }
    expect((await run.exit).code, run.stderr()).toBe(9);
    expect(run.stdout()).toBe(`ready\n${signals.map((signal) => `got ${signal}\n`).join('')}`);
  });

  it('ends at a signal that comes before there is a command to have it', async () => {
    const run = asProcess1([cliFile, 'run', '--node-id', '3', '--', 'sleep', '100']);
    let code: number | null | undefined;
    const ended = run.exit.then((end) => {
      code = end.code;
    });
    // Until the shell has set its traps the kernel keeps signals from process 1, so one may have to be sent
    // again.
    while (code === undefined) {
      for (const first of childHandles(run.pid)) first.signal('SIGTERM');
      await Promise.race([ended, sleep(20)]);
    }
    expect(code, run.stderr()).toBe(143);
  });
});
