import { ConfigError } from '../base/errors.js';
import { type ContainerSources, containerSign } from '../base/host/container.js';

/** The store where none is given: for processes that share a working directory. */
export const DEFAULT_STORE = 'file:.nodelease';

/**
 * Why the default is none here, as a clause: each container would be a separate cluster, with node id 0.
 * Undefined outside of containers.
 */
export function whyNoDefaultStore(sign: string | undefined): string | undefined {
  return (
    sign &&
    `in a container (${sign}) the default, ${DEFAULT_STORE}, would be a cluster of its own: name it if you want that`
  );
}

/** The default of the option `store`. @throws {ConfigError} in a container */
export function defaultStore(
  sources: ContainerSources = { env: process.env, processId: process.pid },
): string {
  const why = whyNoDefaultStore(containerSign(sources));
  if (why !== undefined)
    throw new ConfigError(
      'store',
      undefined,
      `one that all tasks reach, such as s3://bucket/prefix (${why})`,
    );
  return DEFAULT_STORE;
}
