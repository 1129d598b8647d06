import { existsSync } from 'node:fs';

/** The two ways to have a server. */
export interface Ways<T> {
  readonly container: () => Promise<T>;
  readonly process: () => Promise<T>;
}

/**
 * Starts a server in a container where a Docker API is reachable, else as a local process.
 *
 * @param variable the environment variable that insists on one kind: `container` or `process`
 * @throws Error of one line where neither can be had
 */
export async function containerOrProcess<T>(
  name: string,
  variable: string | undefined,
  ways: Ways<T>,
): Promise<T> {
  const kind = (variable && process.env[variable]) || undefined;
  if (kind !== undefined && kind !== 'container' && kind !== 'process')
    throw new Error(`${variable}: expected container or process, got ${kind}`);
  if (kind === 'container' || (kind === undefined && process.env.DOCKER_HOST)) return ways.container();
  if (kind === undefined && existsSync('/var/run/docker.sock')) {
    try {
      return await ways.container();
    } catch (error) {
      process.stderr.write(
        `${name} could not be started in a container, trying a local process: ${String(error)}\n`,
      );
    }
  }
  return ways.process();
}
