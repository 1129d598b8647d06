import { spawn } from 'node:child_process';
import { once } from 'node:events';

/**
 * Installs what `infra/` depends on, unless it is there already: the package has a lock file of its own, so
 * that no user of the product pays for it.
 */
export default async function setup(): Promise<void> {
  const install = spawn('npm', ['run', '--silent', 'install:infra'], { stdio: ['ignore', 'pipe', 'pipe'] });
  const output: Buffer[] = [];
  install.stdout.on('data', (chunk: Buffer) => output.push(chunk));
  install.stderr.on('data', (chunk: Buffer) => output.push(chunk));
  const [code] = (await once(install, 'close')) as [number | null];
  if (code !== 0)
    throw new Error(
      `npm ci in infra/ failed with exit code ${code}:\n${Buffer.concat(output).toString().trim()}`,
    );
}
