import { ConfigError } from '../base/errors.js';

/** Each lock has its own folder here, next to the record of the probe for all of them. */
export const LOCKS = 'locks';

/**
 * A name that is a segment of a path in every store. On some servers no object may have the name of a folder;
 * those of leases end in .json.
 */
export const LOCK_NAME = /^(?!.*\.json$)[A-Za-z0-9_-][A-Za-z0-9._-]{0,199}$/;

/** What precedes the path below a store's root: the bucket, the container or the servers. */
const ROOT = /^(?:file:|(?:s3|gs|etcds?):\/\/[^/]+\/|azblob:\/\/[^/]+\/[^/]+\/)/;

/** The name of the lock that has this URL of a store as its place; undefined for every other URL. */
export function lockNameOf(url: string): string | undefined {
  const [root] = ROOT.exec(url) ?? [];
  if (root === undefined) return undefined;
  const segments = url.slice(root.length).split('/');
  const [folder, name = ''] = segments.filter((segment) => segment !== '' && segment !== '.').slice(-2);
  return folder === LOCKS && LOCK_NAME.test(name) ? name : undefined;
}

/**
 * Refuses a URL that is the place of a lock: a fleet there would keep the lock from its contenders.
 * @throws {ConfigError}
 */
export function refuseLock(url: string, setting = 'store'): void {
  const name = lockNameOf(url);
  if (name === undefined) return;
  throw new ConfigError(
    setting,
    url,
    `a store for node ids, whose path does not end in locks/NAME: that is where nodelease lock keeps lock ${name}`,
  );
}

/** Why there is nothing at the URL of a store, and what makes it. */
export function nothingAt(url: string, nodes?: number): string {
  const name = lockNameOf(url);
  if (name !== undefined) return `No task has used lock ${name} yet: there is nothing at ${url}.`;
  const init = `nodelease init${nodes === undefined ? '' : ` --nodes ${nodes}`}`;
  return `There is no cluster at ${url} yet: ${init} creates one, and so does the first nodelease run.`;
}
