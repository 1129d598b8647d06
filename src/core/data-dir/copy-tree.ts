import { constants, type Stats } from 'node:fs';
import { copyFile, type FileHandle, link, lstat, mkdir, open, rm, symlink } from 'node:fs/promises';
import { join } from 'node:path';
import { concurrently } from '../base/concurrently.js';
import { CANNOT_SYNC_FOLDERS, codeOf, unless } from '../base/files.js';
import { CONCURRENCY, type CopyPlan, type PlannedEntry } from './copy-plan.js';
import { DataDirError } from './data-dir-error.js';
import { type HeldTree, pathOf } from './held-tree.js';

/**
 * How files get into a new version: `link`, the same file under two names; `clone`, a copy that shares its
 * blocks until one is written; `copy`.
 */
export type CopyMode = 'link' | 'clone' | 'copy';

export interface TreeCopy {
  /** Has both directories. */
  readonly tree: HeldTree;
  readonly from: string;
  /** Made with mode 0700: no other user can enter it before the copy is complete. */
  readonly to: string;
  readonly plan: CopyPlan;
  readonly mode: CopyMode;
  /** Called with the progress at each step. Throws to end the copy. */
  readonly step: (files: number, bytes: number) => void;
}

/** How much of a file is copied between two steps, in bytes. */
const CHUNK_BYTES = 4 * 2 ** 20;
/** Error codes of file systems without clones, or without a (further) link for this file. */
const REFUSED = ['ENOTSUP', 'EOPNOTSUPP', 'EXDEV', 'EINVAL', 'ENOSYS', 'ENOTTY', 'EPERM', 'EMLINK'];

/**
 * Copies a tree into a new directory. When it resolves, the whole copy would survive a loss of power: files
 * are synced before the directories that name them. After a failure no further file is begun, and current
 * ones end at their next step.
 */
export async function copyTree(copy: TreeCopy): Promise<void> {
  const { tree, from, to, plan } = copy;
  for (const { path } of plan.directories) {
    copy.step(0, 0);
    if (path !== '') await tree.entry(join(to, path), (at) => mkdir(at, 0o700));
  }
  for (const { path, target } of plan.links) {
    copy.step(0, 0);
    await tree.entry(join(to, path), (at) => symlink(target, at));
  }
  await concurrently(plan.files, CONCURRENCY, async ({ path, stats }, ended) => {
    const step = (files: number, bytes: number) => {
      ended.throwIfAborted();
      copy.step(files, bytes);
    };
    step(0, 0);
    await tree.entry(join(from, path), (source) =>
      tree.entry(join(to, path), (target) => copyOne(source, target, stats, { ...copy, step })),
    );
    step(1, 0);
  });
  // Only now, since the final mode of a directory may forbid new entries. The top comes last, since it lets
  // its owner in.
  const finishDirectory = async ({ path, stats }: PlannedEntry) => {
    copy.step(0, 0);
    // The marker is still to be written there.
    if (path === '') stats.mode |= 0o300;
    await tree.within(join(to, path), async (at) => finish(await open(at, 'r'), stats));
  };
  await concurrently(plan.directories.slice(1), CONCURRENCY, finishDirectory);
  await concurrently(plan.directories.slice(0, 1), 1, finishDirectory);
}

/**
 * Whether the file system clones files. It is tried with the first file that has content, without writing a
 * byte.
 */
export async function canClone({
  tree,
  from,
  to,
  plan,
}: Pick<TreeCopy, 'tree' | 'from' | 'to' | 'plan'>): Promise<boolean> {
  const file = plan.files.find(({ stats }) => stats.size > 0);
  if (file === undefined) return false;
  return tree.entry(join(from, file.path), (source) =>
    tree.entry(join(to, 'clone'), async (trial) => {
      try {
        return await reading(source, file.stats, (opened) => clone(pathOf(opened, source), trial));
      } finally {
        await rm(trial, { force: true });
      }
    }),
  );
}

async function copyOne(from: string, to: string, planned: Stats, { mode, step }: TreeCopy): Promise<void> {
  if (mode === 'link' && (await isDone(link(from, to)))) {
    checkSame(from, await lstat(to), planned);
    return step(0, planned.size);
  }
  await reading(from, planned, async (source, stats) => {
    if (mode === 'clone' && (await clone(pathOf(source, from), to))) {
      step(0, planned.size);
      return finish(await open(to, constants.O_RDONLY | constants.O_NOFOLLOW), stats);
    }
    const copy = await open(to, 'wx', 0o600);
    try {
      await copyBytes(source, copy, planned.size, step);
    } catch (error) {
      await copy.close();
      throw error;
    }
    await finish(copy, stats);
  });
}

/** Opens a file of the plan. A file that has replaced it meanwhile is not read, and no link is followed. */
async function reading<T>(
  path: string,
  planned: Stats,
  work: (file: FileHandle, stats: Stats) => Promise<T>,
): Promise<T> {
  const file = await open(path, constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK);
  try {
    const stats = await file.stat();
    checkSame(path, stats, planned);
    return await work(file, stats);
  } finally {
    await file.close();
  }
}

function checkSame(path: string, { dev, ino }: Stats, planned: Stats): void {
  if (dev !== planned.dev || ino !== planned.ino)
    throw new DataDirError(`${path} was replaced while it was copied`);
}

/** Copies up to the length in the plan: a file that grows faster than it is copied would never end. */
async function copyBytes(
  source: FileHandle,
  copy: FileHandle,
  size: number,
  step: TreeCopy['step'],
): Promise<void> {
  const buffer = Buffer.allocUnsafe(Math.min(CHUNK_BYTES, size));
  for (let at = 0; at < size; ) {
    const { bytesRead } = await source.read(buffer, 0, Math.min(buffer.length, size - at), at);
    if (bytesRead === 0) return;
    for (let written = 0; written < bytesRead; )
      written += (await copy.write(buffer, written, bytesRead - written)).bytesWritten;
    at += bytesRead;
    step(0, bytesRead);
  }
}

async function finish(file: FileHandle, stats: Stats): Promise<void> {
  try {
    await keepAttributes(file, stats);
    await unless(stats.isDirectory() ? CANNOT_SYNC_FOLDERS : [], file.sync());
  } finally {
    await file.close();
  }
}

/** Owner, where this process may set it, mode and times. */
async function keepAttributes(file: FileHandle, { uid, gid, mode, atimeMs, mtimeMs }: Stats): Promise<void> {
  if (process.geteuid?.() === 0) await unless(['EPERM', 'EINVAL'], file.chown(uid, gid));
  // With the rights of its owner a program must not get those of another one, such as this process.
  const copy = await file.stat();
  const isOwners = copy.isDirectory() || (copy.uid === uid && copy.gid === gid);
  await file.chmod(mode & (isOwners ? 0o7777 : 0o1777));
  await file.utimes(atimeMs / 1_000, mtimeMs / 1_000);
}

function clone(from: string, to: string): Promise<boolean> {
  return isDone(copyFile(from, to, constants.COPYFILE_EXCL | constants.COPYFILE_FICLONE_FORCE));
}

/** False if the file system refuses such an operation. */
export async function isDone(operation: Promise<void>): Promise<boolean> {
  try {
    await operation;
    return true;
  } catch (error) {
    if (REFUSED.includes(codeOf(error) ?? '')) return false;
    throw error;
  }
}
