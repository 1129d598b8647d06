import { execFileSync, spawn } from 'node:child_process';
import { once } from 'node:events';
import { closeSync, constants, existsSync, openSync, readFileSync, readSync, writeSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, describe, expect, it } from 'vitest';
import { cliFile, killAll, runCli, runProcess } from '../../../support/processes.js';
import { newFolder, removeFolders } from './run-support.js';

afterAll(async () => {
  await killAll();
  removeFolders();
});

const DURATION = ['--duration', '9s', '--grace', '1s'];
/** A command that has to be asked to end, and then ends with a code of its own. */
const WORK = ['--', 'sh', '-c', 'trap "exit 7" TERM; : >working; while :; do sleep 0.1; done'];

/** A pipe that is full, and without a reader. */
function fullPipe(folder: string) {
  const path = join(folder, 'pipe');
  execFileSync('mkfifo', [path]);
  const fd = openSync(path, constants.O_RDWR | constants.O_NONBLOCK);
  let filled = 0;
  for (const size of [4_096, 1]) {
    for (let left = true; left; ) {
      left = untilEagain(() => {
        filled += writeSync(fd, '\n'.repeat(size));
      });
    }
  }
  return {
    path,
    filled: () => filled,
    /** What is in it. */
    read(): string {
      const parts: string[] = [];
      const bytes = Buffer.alloc(65_536);
      for (let left = true; left; )
        left = untilEagain(() => parts.push(bytes.toString('utf8', 0, readSync(fd, bytes))));
      return parts.join('');
    },
    close: () => closeSync(fd),
  };
}

/** Whether there may be more to do. */
function untilEagain(act: () => unknown): boolean {
  try {
    act();
    return true;
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'EAGAIN') throw error;
    return false;
  }
}

/** When the lease ends, by its own content: 0 while it is not held. Renewals move it on. */
function leaseEnd(folder: string): number {
  try {
    const lease = JSON.parse(readFileSync(join(folder, 'leases/0.json'), 'utf8')) as { timestamp?: number };
    return lease.timestamp ?? 0;
  } catch {
    return 0;
  }
}

/** Resolves when the command of `run` can be asked to end. */
const working = (folder: string) =>
  expect.poll(() => existsSync(join(folder, 'working')), { timeout: 60_000 }).toBe(true);

/** Resolves when the lease has been held, and renewed. */
async function renewed(folder: string): Promise<void> {
  await expect.poll(() => leaseEnd(folder)).toBeGreaterThan(0);
  const first = leaseEnd(folder);
  await expect.poll(() => leaseEnd(folder)).toBeGreaterThan(first);
}

const messages = (log: string) =>
  log
    .split('\n')
    .filter((line) => line !== '')
    .map((line) => (JSON.parse(line) as { msg: string }).msg);

const SERVE = ['serve', '--http', '127.0.0.1:0', ...DURATION];

// They wait for renewals, most of the time.
describe.concurrent('a log that no reader takes', () => {
  it.each([
    { held: 'run', args: ['run', ...DURATION, ...WORK], outputs: '2>pipe', end: 'SIGTERM', code: 7 },
    { held: 'run', args: ['run', ...DURATION, ...WORK], outputs: '2>pipe', end: 'loss', code: 76 },
    // Its address is an answer that has no reader, either.
    { held: 'serve', args: SERVE, outputs: '>pipe 2>&1', end: 'SIGTERM', code: 0 },
  ])('lets $held renew, and end with $code after $end', async ({ args, outputs, end, code }) => {
    const folder = newFolder();
    const env = { NODELEASE_STORE: 'file:leases' };
    const pipe = fullPipe(folder);
    const call = [process.execPath, cliFile, ...args].map((word) => `'${word}'`).join(' ');
    const nodelease = runProcess('sh', ['-c', `exec ${call} ${outputs}`], { cwd: folder, env });
    if (args.includes('--')) await working(folder);
    await renewed(folder);
    if (end === 'SIGTERM') nodelease.kill('SIGTERM');
    else await runCli(['release', '0', '--force'], { cwd: folder, env }).exit;
    expect(await nodelease.exit).toEqual({ code, signal: null });
    expect(pipe.read()).toBe('\n'.repeat(pipe.filled()));
    pipe.close();
  });

  it('has all its lines once the reader is back, on a socket too, which the command shares and has filled', async () => {
    const folder = newFolder();
    const filling = 'head -c 1000000 /dev/zero | tr "\\0" "\\n" >&2 & ';
    const args = ['run', ...DURATION, '--', 'sh', '-c', `${filling}${WORK.at(-1)}`];
    const nodelease = spawn(process.execPath, [cliFile, ...args], {
      cwd: folder,
      env: { PATH: process.env.PATH, NODELEASE_STORE: 'file:leases' },
      stdio: ['ignore', 'ignore', 'pipe'],
    });
    try {
      await working(folder);
      await renewed(folder);
      let log = '';
      nodelease.stderr.setEncoding('utf8').on('data', (text: string) => {
        log += text;
      });
      await expect.poll(() => log.length).toBeGreaterThan(1_000_000);
      await expect.poll(() => log).toContain('acquired node id 0');
      nodelease.kill('SIGTERM');
      expect(await once(nodelease, 'close')).toEqual([7, null]);
      const lines = messages(log);
      expect(lines[0]).toContain('node ids come from');
      expect(lines.at(-1)).toBe('lease released');
    } finally {
      nodelease.kill('SIGKILL');
    }
  });
});

describe('what Node and libraries print', () => {
  it('is in the log, as JSON, from the first moment on', async () => {
    const library = `
      import { isMainThread } from 'node:worker_threads';
      // As the command takes its signals. It has no log yet.
      if (isMainThread) process.once('newListener', function waitForCommand(name) {
        if (name !== 'SIGTERM') return process.once('newListener', waitForCommand);
        process.emitWarning('warned early');
        console.warn('warned of\\n%s', 'a library');
        console.log('printed');
        process.stderr.write('written');
      });`;
    const nodelease = runCli(['run', '--', 'true'], {
      cwd: newFolder(),
      env: {
        NODELEASE_STORE: 'file:leases',
        NODE_OPTIONS: `--import data:text/javascript,${encodeURIComponent(library)}`,
      },
    });
    expect(await nodelease.exit).toEqual({ code: 0, signal: null });
    expect(messages(nodelease.stderr())).toEqual(
      expect.arrayContaining(['warned early', 'warned of a library', 'printed', 'written']),
    );
    expect(nodelease.stdout()).toBe('');
  });
});
