import { mkdir, open } from 'node:fs/promises';
import { dirname } from 'node:path';
import { codeOf, unless } from './file-fault.js';

/**
 * Makes a folder and those above it that are missing. (The `recursive` option of `mkdir` never ends where the system answers ENOENT for
 * a folder that it does not let anybody make, as in /proc.)
 *
 * @returns the topmost folder that was made, or undefined when there was nothing to make
 */
export async function makeFolder(path: string): Promise<string | undefined> {
  try {
    await mkdir(path);
    return path;
  } catch (error) {
    const above = dirname(path);
    if (codeOf(error) === 'EEXIST') return undefined;
    if (codeOf(error) !== 'ENOENT' || above === path) throw error;
    const first = await makeFolder(above);
    await unless(['EEXIST'], mkdir(path));
    return first ?? path;
  }
}

/** Makes a new file; resolves once its content would survive a loss of power, its name apart. */
export async function writeDurably(path: string, content: Buffer): Promise<void> {
  const file = await open(path, 'wx');
  try {
    await file.writeFile(content);
    await file.sync();
  } finally {
    await file.close();
  }
}

/** What systems answer that cannot sync a folder, or need not (Windows). */
const CANNOT_SYNC_FOLDERS = ['EISDIR', 'EPERM', 'EINVAL', 'ENOTSUP', 'EBADF'];

/** Resolves once the names in the folder would survive a loss of power, as far as the file system offers that. */
export async function syncFolder(path: string): Promise<void> {
  try {
    const folder = await open(path, 'r');
    try {
      await folder.sync();
    } finally {
      await folder.close();
    }
  } catch (error) {
    if (!CANNOT_SYNC_FOLDERS.includes(codeOf(error) ?? '')) throw error;
  }
}

/**
 * Syncs the folder above `directory`, and those further up that have been made along with it.
 *
 * @param firstMade what `makeFolder` of something in `directory` answered
 */
export async function syncParents(directory: string, firstMade: string | undefined): Promise<void> {
  const top = dirname(firstMade !== undefined && firstMade.length < directory.length ? firstMade : directory);
  for (let folder = dirname(directory); ; folder = dirname(folder)) {
    // A folder above may be somebody else's, and closed to us.
    await unless(['EACCES'], syncFolder(folder));
    if (folder === top || folder === dirname(folder)) return;
  }
}
