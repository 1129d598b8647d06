import { readdir, rename, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { syncFolder, unless } from '../store/file/files.js';
import { MARKER } from './marker.js';

/** What follows the name of a version that is being removed. No other program takes that for a version, Camunda included. */
const REMOVED = '.removed';

/**
 * Removes the directory of a version, or what is left of one. It is renamed first: a stale holder that works in it by its name fails from that
 * moment on, and makes no marker there. The marker goes before all else: a reader whose network file system has kept the name finds none.
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
