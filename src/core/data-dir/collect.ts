import { chmod, readdir, rename, rmdir, stat, unlink } from 'node:fs/promises';
import { basename, dirname, join } from 'node:path';
import { concurrently } from '../base/concurrently.js';
import { syncFolder, unless } from '../base/files.js';
import { CONCURRENCY } from './copy-plan.js';
import type { HeldTree } from './held-tree.js';
import { MARKER } from './marker.js';

/**
 * Suffix of a version that is being removed. No program takes such a name for a version.
 */
const REMOVED = '.removed';

/**
 * Removes the directory of a version, or a leftover of one. It is renamed first. A stale holder that uses it
 * by its name then fails, and a marker that it writes through the open directory makes no version. The marker
 * is removed before everything else: a reader whose network file system has cached the name finds no marker.
 *
 * @param renamed is called before that, which may take long
 */
export async function removeVersion(
  tree: HeldTree,
  path: string,
  renamed?: (path: string) => Promise<void>,
): Promise<void> {
  const removed = path.endsWith(REMOVED) ? path : path + REMOVED;
  if (removed !== path) {
    await tree.within(dirname(path), (at) => rename(join(at, basename(path)), join(at, basename(removed))));
    await renamed?.(path);
  }
  await unless(
    ['ENOENT'],
    tree.within(removed, (at) => emptied(tree, removed, at)),
  );
  await unless(['ENOENT'], tree.entry(removed, rmdir));
}

/** Removes the content of a directory. Other tasks may remove parts of it first. No link is followed. */
async function emptied(tree: HeldTree, top: string, topAt: string): Promise<void> {
  await makeWritable(topAt);
  await unless(['ENOENT', 'EISDIR'], unlink(join(topAt, MARKER)));
  await syncFolder(topAt);
  const removeFiles = (directory: string) =>
    tree.within(directory, async (at) => {
      await makeWritable(at);
      const entries = await readdir(at, { withFileTypes: true });
      const paths = (isDirectory: boolean) =>
        entries
          .filter((entry) => entry.isDirectory() === isDirectory)
          .map(({ name }) => join(directory, name));
      await concurrently(paths(false), CONCURRENCY, (path) => unless(['ENOENT'], tree.entry(path, unlink)));
      return paths(true);
    });
  // Grows during the loop.
  const levels = [[top]];
  for (const level of levels) {
    const found = await concurrently(level, CONCURRENCY, (each) => unless(['ENOENT'], removeFiles(each)));
    const below = found.flatMap((each) => each ?? []);
    if (below.length > 0) levels.push(below);
  }
  for (const level of levels.slice(1).reverse()) {
    await concurrently(level, CONCURRENCY, (directory) => unless(['ENOENT'], tree.entry(directory, rmdir)));
  }
}

/** A program may have made it read-only, and its owner could remove nothing in it. */
async function makeWritable(directory: string): Promise<void> {
  if (((await stat(directory)).mode & 0o300) !== 0o300) await unless(['EPERM'], chmod(directory, 0o700));
}

/** The paths that other tasks have begun to remove. */
export async function leftoversIn(tree: HeldTree, nodeDir: string): Promise<string[]> {
  const entries = await tree.within(nodeDir, (at) => readdir(at, { withFileTypes: true }));
  return entries
    .filter((entry) => entry.isDirectory() && /^v\d+\.removed$/.test(entry.name))
    .map(({ name }) => join(nodeDir, name));
}
