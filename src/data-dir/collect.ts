import { readdir, rename, rmdir, unlink } from 'node:fs/promises';
import { join } from 'node:path';
import { concurrently } from '../base/concurrently.js';
import { syncFolder, unless } from '../store/file/files.js';
import { CONCURRENCY } from './copy-plan.js';
import { MARKER } from './marker.js';
import type { VersionDir } from './versions.js';

/** What follows the name of a version that is being removed. No other program takes that for a version, Camunda included. */
const REMOVED = '.removed';

/**
 * Removes the directory of a version. Whoever still works in it by its name fails from the first moment on, and makes no marker there: it is
 * renamed first. Whoever reads it through a name that a network file system has kept finds no marker any more: that goes before all else.
 */
export async function removeVersion({ path }: Pick<VersionDir, 'path'>, check: () => void): Promise<void> {
  const removed = path + REMOVED;
  await rename(path, removed);
  await unless(['ENOENT', 'EISDIR', 'EPERM'], unlink(join(removed, MARKER)));
  await syncFolder(removed);
  await removeTree(removed, check);
}

/** Goes on with what others have begun to remove. */
export async function removeLeftovers(nodeDir: string, check: () => void): Promise<void> {
  for (const entry of await readdir(nodeDir, { withFileTypes: true }))
    if (entry.isDirectory() && /^v\d+\.removed$/.test(entry.name)) await removeTree(join(nodeDir, entry.name), check);
}

/** Removes a directory with all that is in it, where there is one. No link is followed. */
async function removeTree(path: string, check: () => void): Promise<void> {
  check();
  const entries = await unless(['ENOENT'], readdir(path, { withFileTypes: true }));
  if (entries === undefined) return;
  await concurrently(entries, CONCURRENCY, async (entry) => {
    check();
    const at = join(path, entry.name);
    if (entry.isDirectory()) await removeTree(at, check);
    else await unless(['ENOENT'], unlink(at));
  });
  await unless(['ENOENT'], rmdir(path));
}
