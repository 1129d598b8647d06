import { execFile } from 'node:child_process';
import { promisify } from 'node:util';
import { packageRoot } from './package-root.js';

/**
 * Compiles the programs that tests run in processes of their own.
 *
 * Wrong types do not stop the tests, since what was emitted can still be run; `npm run typecheck` reports them.
 *
 * @throws Error when nothing could be compiled
 */
export async function buildHarness(): Promise<void> {
  try {
    await promisify(execFile)('npm', ['run', '--silent', 'build:harness'], { cwd: packageRoot });
  } catch (error) {
    const { code, stdout = '', stderr = '' } = error as { code?: number; stdout?: string; stderr?: string };
    const text = `${stdout}${stderr}`.trim();
    // The compiler's exit code when it has written everything although some types are wrong.
    if (code !== 2) throw new Error(`npm run build:harness failed with exit code ${code}:\n${text}`);
    process.stderr.write(`The harness has type errors; running what was emitted.\n${text}\n`);
  }
}
