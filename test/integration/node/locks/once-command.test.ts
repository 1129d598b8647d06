import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { parseLog } from '../../../support/fleet.js';
import { runInProcess } from '../../../support/in-process.js';
import { killAll, runCli, type TestProcess } from '../../../support/processes.js';
import { newFolder, removeFolders } from '../../app/cli/run-support.js';

let folder: string;
let store: string;

beforeEach(() => {
  folder = newFolder();
  store = `file:${folder}/store`;
});
afterEach(async () => {
  await killAll();
  removeFolders();
});

/** Half a day from now: no tick falls into a test. */
const HOUR = String((new Date().getUTCHours() + 12) % 24).padStart(2, '0');
/** Runs a script at the ticks `report`, a day apart. */
const once = (script: string, ...options: string[]) => {
  const words = ['once', 'report', '--store', store, '--cron', `0 ${HOUR} * * *`, ...options];
  return runCli([...words, '--', '/bin/sh', '-c', script]);
};
const messages = (run: TestProcess) => parseLog(run.stderr()).map(({ msg }) => msg);
const locks = async () => (await runInProcess(['status', '--locks', '--store', store])).answer;

describe('nodelease once', () => {
  it('runs the command at one host, with the lock, token and tick in its environment; status --locks shows what became of it', async () => {
    const run = once('echo $LOCK_NAME $LOCK_TOKEN $ONCE_TICK; sleep 300', '--task-id', 'me');
    const [, tick = ''] = await run.waitForOutput(new RegExp(`^report 1 (\\S+T${HOUR}:00:00\\.000Z)\\n`));
    expect(await locks()).toMatch(new RegExp(`report +held +me +1 .* ${tick} +running`));
    const other = once('echo never');
    expect((await other.exit).code).toBe(0);
    expect(other.stdout()).toBe('');
    expect(messages(other)).toContain(
      'nothing to do: the due tick of report is claimed, or was missed during another run',
    );
    run.kill('SIGTERM');
    expect((await run.exit).code).toBe(143);
    expect(await locks()).toMatch(new RegExp(`report +released .* ${tick} +failed after \\d`));
  });

  it('keeps the exit code; with --retry the command runs again, so often and no more', async () => {
    const file = join(folder, 'runs');
    const script = `echo $LOCK_TOKEN >> ${file}; exit 3`;
    expect((await once(script, '--retry', '1').exit).code).toBe(3);
    expect(readFileSync(file, 'utf8')).toBe('1\n2\n');
    expect((await once(script, '--retry', '1').exit).code).toBe(0);
    expect(readFileSync(file, 'utf8')).toBe('1\n2\n');
  });

  it('warns where the success cannot be recorded', async () => {
    const run = once(`echo changed > ${store.slice('file:'.length)}/locks/report/tick.json`);
    expect((await run.exit).code).toBe(0);
    expect(messages(run)).toContainEqual(
      expect.stringMatching(/^the success of tick \S+ could not be recorded: its outcome counts as unknown$/),
    );
  });

  it('with --retry a command that takes longer than its period, and fails, ends with its exit code at the next tick', async () => {
    // Soon, and then a day later: neither the start nor the look after the end meets a tick.
    const next = new Date(Date.now() + 15_000);
    const cron = `${next.getUTCSeconds()} ${next.getUTCMinutes()} ${next.getUTCHours()} * * *`;
    const words = ['once', 'report', '--store', store, '--cron', cron, '--retry', '5'];
    const script = `echo $ONCE_TICK; until [ $(date +%s) -gt ${Math.ceil(next.getTime() / 1_000)} ]; do sleep 0.1; done; exit 3`;
    const run = runCli([...words, '--', '/bin/sh', '-c', script]);
    expect((await run.exit).code).toBe(3);
    expect(run.stdout()).toMatch(/^\S+\n$/);
  });

  it('with --retry a command that was killed with its host runs again at one that waits, and not twice at a time', async () => {
    const script = 'echo token $LOCK_TOKEN; [ $LOCK_TOKEN = 1 ] && sleep 300; true';
    const options = ['--retry', '1', '--duration', '8s', '--wait-poll', '100ms'];
    const first = once(script, ...options);
    await first.waitForOutput(/^token 1$/m);
    first.kill('SIGKILL');
    const next = once(script, ...options);
    expect((await next.exit).code).toBe(0);
    expect(next.stdout()).toBe('token 2\n');
    expect(messages(next).join('\n')).toMatch(/the outcome of tick .* is unknown/);
  });

  it('with --catch-up the due tick runs also after a missed one that has failed, and the exit code shows that failure', async () => {
    expect((await once('true').exit).code).toBe(0);
    const file = join(folder, 'store/locks/report/tick.json');
    const early = (_: string, tick: string) => `"tick":${Number(tick) - 3 * 86_400_000}`;
    writeFileSync(file, readFileSync(file, 'utf8').replace(/"tick":(\d+)/, early));
    const run = once('echo $ONCE_TICK; [ $LOCK_TOKEN = 3 ] || exit 7', '--catch-up');
    expect((await run.exit).code).toBe(7);
    const [missed = 0, due = 0] = run.stdout().trim().split('\n').map(Date.parse);
    expect(due - missed).toBe(86_400_000);
  });

  it('ends with 64 without a command, and with 69 where tick.json is damaged, which --forget mends; missed ticks are counted up to 1000', async () => {
    const words = ['once', 'report', '--store', store, '--every', '1h'];
    const plain = await runInProcess(words);
    expect(plain.complaints).toMatch(/no command given: expected one after --, or --forget \[USAGE\]/);
    expect(plain.code).toBe(64);
    const both = await runInProcess([...words, '--forget', '--', 'true']);
    expect(both.complaints).toMatch(/--forget runs no command: leave out one of them \[USAGE\]/);
    expect(both.code).toBe(64);
    const unused = await runInProcess([...words, '--forget']);
    expect(unused.complaints).toMatch(/No task has used lock report yet: .* \[CLUSTER_MISSING\]/);
    expect(unused.code).toBe(69);
    expect((await once('true').exit).code).toBe(0);
    const ticks = join(folder, 'store/locks/report/tick.json');
    writeFileSync(ticks, readFileSync(ticks, 'utf8').replace(/"tick":\d+/, '"tick":0'));
    const late = once('true');
    expect((await late.exit).code).toBe(0);
    expect(messages(late)).toContain('at least 1000 ticks of report before it ran nowhere');
    writeFileSync(ticks, 'x');
    const damaged = once('echo never');
    expect((await damaged.exit).code).toBe(69);
    expect(damaged.stderr()).toMatch(/CLUSTER_DAMAGED/);
    const forgotten = await runInProcess([...words, '--forget']);
    expect(forgotten).toMatchObject({
      code: 0,
      answer: expect.stringMatching(/^tick .*Z of report counts as run\n$/),
    });
    expect((await once('echo never').exit).code).toBe(0);
  });
});
