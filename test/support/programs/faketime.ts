import { execFile } from 'node:child_process';
import { rm } from 'node:fs/promises';
import { join } from 'node:path';
import { promisify } from 'node:util';

const run = promisify(execFile);

const HELP = `Tests need libfaketime, for hosts whose clocks are wrong, and it is not there. One of these will do:
  - Debian or Ubuntu: apt-get install faketime (done by itself when the tests run as root),
  - another system: its package of libfaketime, with the command \`faketime\` on the PATH.`;

let found: Promise<string> | undefined;

/**
 * The environment in which a program believes that its wall clock is off by `offset`, for example `+10h`. Its
 * monotonic clock is left alone, as on a host whose wall clock was set wrongly; it is checked here that this
 * is so.
 *
 * @throws Error when there is no libfaketime and it cannot be installed
 */
export async function faketimeEnvironment(offset: `${'+' | '-'}${number}h`): Promise<Record<string, string>> {
  found ??= findLibrary();
  return environment(await found, offset);
}

function environment(library: string, offset: string): Record<string, string> {
  // Its older and newer versions know one name each.
  return {
    LD_PRELOAD: library,
    FAKETIME: offset,
    FAKETIME_DONT_FAKE_MONOTONIC: '1',
    DONT_FAKE_MONOTONIC: '1',
  };
}

async function findLibrary(): Promise<string> {
  const library = (await askForLibrary()) ?? (await install());
  await check(library);
  return library;
}

/** The host's own tool knows where its library is. */
async function askForLibrary(): Promise<string | undefined> {
  const answer = await run('faketime', ['-f', '+0s', 'sh', '-c', 'printf %s "$LD_PRELOAD"']).catch(
    () => undefined,
  );
  const path = answer?.stdout.split(':')[0];
  return path ? path : undefined;
}

async function install(): Promise<string> {
  const failures: string[] = [];
  if (process.getuid?.() === 0) {
    process.stderr.write('Installing faketime with apt-get.\n');
    const apt = (...args: string[]) =>
      run('apt-get', args, { env: { ...process.env, DEBIAN_FRONTEND: 'noninteractive' } });
    const packages = ['install', '-y', '--no-install-recommends', 'faketime'];
    await apt(...packages)
      // The list of packages may be old, or missing, as in most images of containers.
      .catch(async () => {
        await apt('update');
        await apt(...packages);
      })
      .catch((error: unknown) => failures.push(String(error)));
  }
  const library = await askForLibrary();
  if (library === undefined) throw new Error([HELP, ...failures].join('\n'));
  return library;
}

/** A version that fakes the monotonic clock as well would make every test of it worthless, without a word. */
async function check(library: string): Promise<void> {
  const { wallMs, monotonicMs } = await clockOffsets({ ...process.env, ...environment(library, '+10h') });
  if (Math.abs(wallMs - 36_000_000) < NEAR_MS && Math.abs(monotonicMs) < NEAR_MS) return;
  throw new Error(
    `${library} was asked for a wall clock 10 hours ahead and a right monotonic one; they are ahead by ${wallMs} and ${monotonicMs} ms`,
  );
}

/** What starting a process and slow machines may add to an offset, in milliseconds. */
const NEAR_MS = 60_000;

/** How far ahead of ours the clocks are that a program of this environment sees, in milliseconds. */
export async function clockOffsets(env: NodeJS.ProcessEnv): Promise<{ wallMs: number; monotonicMs: number }> {
  const script = 'console.log(Date.now(), Number(process.hrtime.bigint()) / 1e6)';
  // Through a shell: what holds for a program has to hold for its children.
  const running = run('sh', ['-c', `"$0" -e "${script}"; true`, process.execPath], { env });
  const { stdout } = await running;
  if (running.child.pid !== undefined) await removeTraces(running.child.pid);
  const [wall = Number.NaN, monotonic = Number.NaN] = stdout.split(' ').map(Number);
  return { wallMs: wall - Date.now(), monotonicMs: monotonic - Number(process.hrtime.bigint()) / 1e6 };
}

/**
 * Removes what libfaketime keeps in shared memory for a process that was killed, and could not do it itself.
 */
export async function removeTraces(pid: number): Promise<void> {
  for (const name of [`faketime_shm_${pid}`, `sem.faketime_sem_${pid}`])
    await rm(join('/dev/shm', name), { force: true });
}
