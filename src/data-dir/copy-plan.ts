import type { Stats } from 'node:fs';
import { lstat, readdir, readlink } from 'node:fs/promises';
import { join } from 'node:path';
import { concurrently } from '../base/concurrently.js';
import type { Exclusion } from './exclude.js';
import { OWN_NAMES } from './marker.js';

/** A file or directory, with its path from the top of the tree; '' is the top itself. */
export interface PlannedEntry {
  readonly path: string;
  readonly stats: Stats;
}

/** All of a tree that a copy of it would have, and what speaks against one. */
export interface CopyPlan {
  /** Each one behind that which it is in. */
  readonly directories: readonly PlannedEntry[];
  readonly files: readonly PlannedEntry[];
  readonly links: readonly { readonly path: string; readonly target: string }[];
  /** The symbolic links that lead out of the tree. */
  readonly escaping: readonly string[];
  /** The directories on which another file system is mounted. */
  readonly mounts: readonly string[];
  /** Sockets, FIFOs and devices: they hold no data, and are left out. */
  readonly special: readonly string[];
  /** The sizes of all files. */
  readonly bytes: number;
}

/** The number of requests to a file system at the same time: a network file system answers each of them in milliseconds. */
export const CONCURRENCY = 8;

/** Looks through a tree. No link is followed. @throws whatever `check` throws, which is called again and again */
export async function planCopy(top: string, isExcluded: Exclusion, check: () => void): Promise<CopyPlan> {
  const stats = await lstat(top);
  const directories: PlannedEntry[] = [{ path: '', stats }];
  const files: PlannedEntry[] = [];
  const links: CopyPlan['links'][number][] = [];
  const escaping: string[] = [];
  const mounts: string[] = [];
  const special: string[] = [];
  const look = async (path: string) => {
    check();
    const at = join(top, path);
    const entry = { path, stats: await lstat(at) };
    if (entry.stats.isFile()) files.push(entry);
    else if (entry.stats.isDirectory()) {
      directories.push(entry);
      if (entry.stats.dev !== stats.dev) mounts.push(path);
    } else if (entry.stats.isSymbolicLink()) {
      const target = await readlink(at);
      links.push({ path, target });
      if (leadsOut(path, target)) escaping.push(path);
    } else special.push(path);
  };
  // Grows while it is gone through.
  for (const { path: directory } of directories) {
    check();
    const names = (await readdir(join(top, directory))).filter((name) => directory !== '' || !OWN_NAMES.includes(name));
    const paths = names.map((name) => join(directory, name)).filter((path) => !isExcluded(path));
    await concurrently(paths, CONCURRENCY, look);
  }
  const bytes = files.reduce((sum, file) => sum + file.stats.size, 0);
  return { directories, files, links, escaping, mounts, special, bytes };
}

/**
 * Whether a symbolic link leads out of the tree: by an absolute path, by more `..` than there are directories above it, or by `..` behind a
 * name, which may be another link's. Names alone lead on from where they stand, and each link on that way is examined itself.
 */
export function leadsOut(path: string, target: string): boolean {
  const parts = target.split('/').filter((part) => part !== '' && part !== '.');
  const climbs = parts.filter((part) => part === '..').length;
  return target.startsWith('/') || climbs > path.split('/').length - 1 || parts.lastIndexOf('..') >= climbs;
}
