import type { Stats } from 'node:fs';
import { lstat, readdir, readlink, stat } from 'node:fs/promises';
import { join } from 'node:path';
import { concurrently } from '../base/concurrently.js';
import { DataDirError } from './data-dir-error.js';
import type { Exclusion } from './exclude.js';
import type { HeldTree } from './held-tree.js';
import { OWN_NAMES } from './marker.js';

/** A file or directory, with its path from the top of the tree; '' is the top itself. */
export interface PlannedEntry {
  readonly path: string;
  readonly stats: Stats;
}

/** The content of a copy of a tree. Sockets, FIFOs and devices hold no data, and are left out. */
export interface CopyPlan {
  /** Each directory comes after its parent. */
  readonly directories: readonly PlannedEntry[];
  readonly files: readonly PlannedEntry[];
  readonly links: readonly { readonly path: string; readonly target: Buffer }[];
  /** The sizes of all files. */
  readonly bytes: number;
}

/**
 * Maximum number of simultaneous requests to a file system: a network file system answers each one in
 * milliseconds.
 */
export const CONCURRENCY = 8;

/**
 * Scans the directory at `top` of a tree. No link is followed.
 *
 * @throws {DataDirError} when a symbolic link leads out of the tree, or a name cannot be read
 * @throws what `check` throws; it is called repeatedly
 */
export async function planCopy(
  tree: HeldTree,
  top: string,
  isExcluded: Exclusion,
  check: () => void,
): Promise<CopyPlan> {
  const directories: PlannedEntry[] = [];
  const files: PlannedEntry[] = [];
  const links: CopyPlan['links'][number][] = [];
  // Grows during the loop.
  const unseen = [''];
  const look = async (at: string, path: string) => {
    check();
    const stats = await lstat(at).catch((error: unknown) => {
      if (!path.includes('\uFFFD')) throw error;
      throw new DataDirError(`${at} is not the name of the file, which is not UTF-8: rename or exclude it`);
    });
    if (stats.isFile()) files.push({ path, stats });
    else if (stats.isDirectory()) unseen.push(path);
    else if (stats.isSymbolicLink()) {
      const target = await readlink(at, 'buffer');
      if (leadsOut(path, target.toString()))
        throw new DataDirError(
          `${at} is a symbolic link that leads out of ${join(tree.top, top)}: remove or exclude it`,
        );
      links.push({ path, target });
    }
  };
  for (const directory of unseen) {
    check();
    await tree.within(join(top, directory), async (at) => {
      // The attributes of the open directory: another one may have its name by now.
      directories.push({ path: directory, stats: await stat(at) });
      const names = (await readdir(at)).filter((name) => directory !== '' || !OWN_NAMES.includes(name));
      const paths = names.map((name) => join(directory, name)).filter((path) => !isExcluded(path));
      await concurrently(paths, CONCURRENCY, (path) =>
        tree.entry(join(top, path), (each) => look(each, path)),
      );
    });
  }
  const bytes = files.reduce((sum, file) => sum + file.stats.size, 0);
  return { directories, files, links, bytes };
}

/**
 * Whether a symbolic link leads out of the tree: by an absolute path, or by more `..` than there are
 * directories above it. So does a `..` after a name, which may be that of another link. Names alone lead on
 * below the link's directory, and each link on that path is examined itself.
 */
export function leadsOut(path: string, target: string): boolean {
  const parts = target.split('/').filter((part) => part !== '' && part !== '.');
  const climbs = parts.filter((part) => part === '..').length;
  return target.startsWith('/') || climbs > path.split('/').length - 1 || parts.lastIndexOf('..') >= climbs;
}
