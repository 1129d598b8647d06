import { afterEach, expect, test } from 'vitest';
import { ProcessHandle } from './process-handle.js';
import { killAll, runCli, runProcess } from './processes.js';

afterEach(killAll);

test('the built command runs as its users run it', async () => {
  const cli = runCli(['--version']);
  expect(await cli.exit).toEqual({ code: 0, signal: null });
  expect(cli.stdout()).toMatch(/^\d+\.\d+\.\d+\n$/);
});

test('no setting of the surroundings reaches it', async () => {
  process.env.NODELEASE_NODES = '7';
  const printed = runProcess('sh', ['-c', 'echo "[$NODELEASE_NODES][$GIVEN]"'], { env: { GIVEN: 'yes' } });
  delete process.env.NODELEASE_NODES;
  await printed.exit;
  expect(printed.stdout()).toBe('[][yes]\n');
});

test('standard input is given and closed, outputs are kept apart', async () => {
  const copy = runProcess('sh', ['-c', 'cat; echo problem >&2; exit 3'], { stdin: 'text' });
  expect(await copy.exit).toEqual({ code: 3, signal: null });
  expect([copy.stdout(), copy.stderr()]).toEqual(['text', 'problem\n']);
});

test('waiting for output finds what came before and what comes later, and says what there was when it does not come', async () => {
  const talker = runProcess('sh', ['-c', 'echo early; sleep 0.2; echo late 42 >&2; exec sleep 30']);
  expect((await talker.waitForOutput(/late (\d+)/g))[1]).toBe('42');
  await talker.waitForOutput(/early/);
  await expect(talker.waitForOutput(/never/, 1_000)).rejects.toThrow(/within 1000 ms.*early.*late 42/s);
  const ended = talker.waitForOutput(/never/, 60_000);
  talker.kill('SIGTERM');
  await expect(ended).rejects.toThrow('before it ended with SIGTERM');
});

test('killAll() ends what still runs', async () => {
  const sleeper = runProcess('sleep', ['60']);
  await killAll();
  expect(await sleeper.exit).toEqual({ code: null, signal: 'SIGKILL' });
});

test('an orphan that writes without end to the output of its parent keeps no process alive', async () => {
  const pipes = () => process.getActiveResourcesInfo().filter((name) => name === 'PipeWrap').length;
  const before = pipes();
  const shell = runProcess('sh', ['-c', 'while echo on >&2; do sleep 0.01; done & orphan=$!; echo $orphan']);
  try {
    expect(await shell.exit).toEqual({ code: 0, signal: null });
    expect(pipes()).toBe(before);
  } finally {
    new ProcessHandle(Number(shell.stdout())).signal('SIGKILL');
  }
});

test('a command that does not exist is an error at once', () => {
  expect(() => runProcess('/no/such/command', [])).toThrow('/no/such/command could not be started');
});
