import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { oncePerRun } from './once-per-run.js';

/** The compiler's exit code when it has written everything although some types are wrong. */
const EMITTED_WITH_TYPE_ERRORS = 2;

/**
 * Builds `dist/` once for the whole run: some tests run the command as its users do.
 *
 * Wrong types do not stop the tests, since what was emitted can still be tested; `npm run typecheck` reports them.
 */
export default async function setup(): Promise<() => Promise<void>> {
  const { giveUp } = await oncePerRun('build', async () => {
    const build = spawn('npm', ['run', '--silent', 'build'], { stdio: ['ignore', 'pipe', 'pipe'] });
    const output: Buffer[] = [];
    build.stdout.on('data', (chunk: Buffer) => output.push(chunk));
    build.stderr.on('data', (chunk: Buffer) => output.push(chunk));
    const [code] = (await once(build, 'close')) as [number | null];
    const text = Buffer.concat(output).toString().trim();
    if (code === EMITTED_WITH_TYPE_ERRORS) process.stderr.write(`The build has type errors; testing what was emitted.\n${text}\n`);
    else if (code !== 0) throw new Error(`npm run build failed with exit code ${code}:\n${text}`);
    return { value: undefined, tearDown: async () => {} };
  });
  return giveUp;
}
