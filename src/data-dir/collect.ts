import { readdir, rename, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { syncFolder, unless } from '../store/file/files.js';
import { MARKER } from './marker.js';

/** What follows the name of a version that is being removed. No other program takes that for a version, Camunda included. */
const REMOVED = '.removed';

/**
 * Removes the directory of a version, or what is left of one. Whoever still works in it by its name fails from the first moment on, and makes no
 * marker there: it is renamed first. Whoever reads it through a name that a network file system has kept finds no marker any more: that goes
 * before all else.
 */
export async function removeVersion(path: string): Promise<void> {
  const removed = path.endsWith(REMOVED) ? path : path + REMOVED;
  if (removed !== path) await rename(path, removed);
  await rm(join(removed, MARKER), { recursive: true, force: true });
  await unless(['ENOENT'], syncFolder(removed));
  await rm(removed, { recursive: true, force: true });
}

/** The paths of what others have begun to remove. */
export async function leftoversIn(nodeDir: string): Promise<string[]> {
  const entries = await readdir(nodeDir, { withFileTypes: true });
  return entries.filter((entry) => entry.isDirectory() && /^v\d+\.removed$/.test(entry.name)).map(({ name }) => join(nodeDir, name));
}
