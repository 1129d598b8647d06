import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { packageRoot } from '../package-root.js';

/** The compiler's exit code when it has written everything although some types are wrong. */
const EMITTED_WITH_TYPE_ERRORS = 2;

/**
 * Runs a build script of package.json.
 *
 * Wrong types do not stop the tests, since what was emitted can still be tested; `npm run typecheck` reports
 * them.
 *
 * @throws Error with its output when nothing could be built
 */
export async function npmBuild(script: 'build' | 'build:harness'): Promise<void> {
  const build = spawn('npm', ['run', '--silent', script], {
    cwd: packageRoot,
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  const output: Buffer[] = [];
  build.stdout.on('data', (chunk: Buffer) => output.push(chunk));
  build.stderr.on('data', (chunk: Buffer) => output.push(chunk));
  const [code] = (await once(build, 'close')) as [number | null];
  const text = Buffer.concat(output).toString().trim();
  if (code === EMITTED_WITH_TYPE_ERRORS)
    process.stderr.write(`npm run ${script} found type errors; testing what was emitted.\n${text}\n`);
  else if (code !== 0) throw new Error(`npm run ${script} failed with exit code ${code}:\n${text}`);
}
