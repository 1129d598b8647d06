import { checkArguments, checkPlain, splitList } from '../../core/base/arguments.js';
import { ConfigError } from '../../core/base/errors.js';

/**
 * Checks that a text can be the name of a znode, one step of a path, and returns it.
 *
 * @param label the setting that it comes from, as its user knows it
 * @throws {ConfigError} when it cannot
 */
export function checkZnodeName(name: string, label: string): string {
  checkArguments({ label });
  if (typeof name === 'string' && !name.includes('/') && nameProblem(name) === undefined) return name;
  throw new ConfigError(label, name, 'a name without "/" and control characters, other than "." and ".."');
}

/**
 * Takes paths apart that are separated by commas.
 * @throws {ConfigError} naming the setting `label` for one that is none
 */
export function parsePaths(text: string, label: string): readonly string[] {
  const paths = splitList(text, label);
  const wrong = paths.find((path) => pathProblem(path) !== undefined);
  if (wrong === undefined) return paths;
  throw new ConfigError(
    label,
    wrong,
    `absolute paths of ZooKeeper, such as /locks,/leader (${pathProblem(wrong)})`,
  );
}

/**
 * Checks that a text can be the path of a znode, and returns it.
 *
 * @param label the setting that it comes from, as its user knows it
 * @param example such a path
 * @throws {ConfigError} where it is no absolute path, or the root
 */
export function checkPath(path: string, label: string, example: string, ofRoot = 'it is the root'): string {
  checkPlain(path, label);
  const problem = path === '/' ? ofRoot : pathProblem(path);
  if (problem === undefined) return path;
  throw new ConfigError(label, path, `an absolute path of ZooKeeper, such as ${example} (${problem})`);
}

/**
 * The problem of an absolute path, as a short sentence; undefined without one.
 *
 * The rules are the servers' own: they refuse a path that breaks them, some by closing the connection.
 * `/zookeeper` belongs to them, at the root only.
 */
export function pathProblem(path: string): string | undefined {
  if (typeof path !== 'string') return 'a path is a text';
  if (path === '/' || PLAIN.test(path)) return undefined;
  if (!path.startsWith('/')) return 'a path begins with "/"';
  if (path.endsWith('/')) return 'a path does not end with "/"';
  for (const name of path.slice(1).split('/')) {
    const problem = nameProblem(name);
    if (problem !== undefined) return problem;
  }
  return undefined;
}

/**
 * Whether a path from the servers' root, any chroot included, lies in the part that they keep for themselves.
 */
export function isReserved(path: string): boolean {
  return path === '/zookeeper' || path.startsWith('/zookeeper/');
}

/** The path of the parent; the root is its own. */
export const parentOf = (path: string): string => path.slice(0, path.lastIndexOf('/')) || '/';

/** The last name in a path. */
export const nameAt = (path: string): string => path.slice(path.lastIndexOf('/') + 1);

/** A path within a chroot as the servers know it. */
export function withinChroot(chroot: string, path: string): string {
  if (chroot === '') return path;
  return path === '/' ? chroot : chroot + path;
}

/** Most paths, at a fraction of the time: names without a dot or anything that is rare. */
const PLAIN = /^(?:\/[\w-]+)+$/;

function nameProblem(name: string): string | undefined {
  if (name === '') return 'a name is empty';
  if (name === '.' || name === '..') return `${name} is no name`;
  return ALLOWED.test(name) ? undefined : 'a name contains a character that the servers refuse';
}

/**
 * ZooKeeper's PathUtils refuses control characters, surrogates with the private use area, and the specials.
 */
const ALLOWED = /^[\u0020-\u007e\u00a0-\ud7ff\uf900-\uffef]*$/;
