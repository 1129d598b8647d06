import { ConfigError } from '../base/errors.js';
import { parseStoreUrl, storeKindOf } from './stores.js';

/** Each lock has its own folder here, next to the record of the probe for all of them, and its scratch objects. */
export const LOCKS = 'locks';

/**
 * A name that is a segment of a path in every store. On some servers no object may have the name of a folder;
 * those of leases end in .json. What begins with probe- may be deleted.
 */
export const LOCK_NAME = /^(?!probe-|.*\.json$)[A-Za-z0-9_-][A-Za-z0-9._-]{0,199}$/;

/** The URL of the locks below a store, or of one of them. @throws {ConfigError} when there is no such store */
export function locksUrl(store: string, name?: string): string {
  const { url } = parseStoreUrl(store);
  const path = name === undefined ? LOCKS : `${LOCKS}/${name}`;
  return storeKindOf(url)?.sharedBy === 'process' ? url : `${url.replace(/\/$/, '')}/${path}`;
}

/** The name of the lock that has this URL of a store as its place; undefined for every other URL. */
export function lockNameOf(url: string): string | undefined {
  const { form } = storeKindOf(url) ?? {};
  if (form === undefined) return undefined;
  // The bucket, the container or the servers: what comes before the path in a store.
  const root = segmentsOf(form).slice(0, -1);
  const [folder, name = ''] = segmentsOf(url).slice(root.length).slice(-2);
  return folder === LOCKS && LOCK_NAME.test(name) ? name : undefined;
}

/** What follows the scheme. */
function segmentsOf(url: string): string[] {
  const path = url.slice(url.indexOf(':') + 1);
  return path.split('/').filter((segment) => segment !== '' && segment !== '.');
}

/**
 * Refuses a URL that is the place of a lock: a fleet there would keep the lock from its
 * contenders, and a lock there would be another one.
 * @throws {ConfigError}
 */
export function refuseLock(url: string): void {
  const name = lockNameOf(url);
  if (name === undefined) return;
  throw new ConfigError(
    'store',
    url,
    `a store for node ids and locks, whose path does not end in locks/NAME: that is where nodelease lock keeps lock ${name}`,
  );
}

/** Why there is nothing at the URL of a store, and what makes it. */
export function nothingAt(url: string, nodes?: number): string {
  const name = lockNameOf(url);
  if (name !== undefined) return `No task has used lock ${name} yet: there is nothing at ${url}.`;
  const init = `nodelease init${nodes === undefined ? '' : ` --nodes ${nodes}`}`;
  return `There is no cluster at ${url} yet: ${init} creates one, and so does the first nodelease run. If there was one, start nothing: its data is missing.`;
}
