import { checkArguments, checkPlain, kind, TEXT } from '../../core/base/arguments.js';
import { ConfigError } from '../../core/base/errors.js';
import { checkZnodeName, isReserved, pathProblem } from '../client/znode-path.js';

/** The root of the discovery tree, within the chroot: no services are registered there. */
export const DISCOVERY_PATH = '/discovery';

/** Where services are registered by default: Spring Cloud's root. Curator itself has no default. */
export const DEFAULT_BASE_PATH = '/services';

export const BASE_PATH = kind(`an absolute path such as ${DEFAULT_BASE_PATH}`, TEXT.is);

/**
 * Checks that services can be registered below a path.
 *
 * @param label the setting that it comes from, as its user knows it
 * @throws {ConfigError} when it is not an absolute path within the chroot, or belongs to the discovery tree
 * or the servers
 */
export function checkBasePath(basePath: string, label = 'basePath'): void {
  checkArguments({ [label]: basePath }, { [label]: BASE_PATH });
  checkPlain(basePath, label);
  const problem = pathProblem(basePath) ?? ownerProblem(basePath);
  if (problem !== undefined) throw new ConfigError(label, basePath, `${BASE_PATH.expected} (${problem})`);
}

/** Foreign znodes would pass for services there. */
function ownerProblem(path: string): string | undefined {
  if (isReserved(path)) return '/zookeeper belongs to the servers';
  return `${path}/`.startsWith(`${DISCOVERY_PATH}/`)
    ? `${DISCOVERY_PATH} is the tree of the nodes and endpoints`
    : undefined;
}

/**
 * The znode whose children are the instances of a service: `<base>/<name>`.
 * @throws {ConfigError} when the name cannot be a znode's
 */
export function servicePath(basePath: string, name: string): string {
  return `${basePath === '/' ? '' : basePath}/${checkZnodeName(name, 'service')}`;
}

/**
 * The znode of an instance, `<base>/<name>/<id>`, without a number that `id` does not have.
 * @throws {ConfigError} when a name cannot be a znode's
 */
export function instancePath(basePath: string, name: string, id: string): string {
  checkZnodeName(id, 'instance id');
  return `${servicePath(basePath, name)}/${id}`;
}
