import { constants, type Stats } from 'node:fs';
import { copyFile, type FileHandle, link, mkdir, open, rm, symlink } from 'node:fs/promises';
import { join } from 'node:path';
import { concurrently } from '../base/concurrently.js';
import { CANNOT_SYNC_FOLDERS, codeOf, unless } from '../store/file/files.js';
import { CONCURRENCY, type CopyPlan } from './copy-plan.js';

/** How files get into a new version: `link`, the same file under two names; `clone`, a copy that shares its blocks until one is written; `copy`. */
export type CopyMode = 'link' | 'clone' | 'copy';

export interface TreeCopy {
  readonly from: string;
  readonly to: string;
  readonly plan: CopyPlan;
  readonly mode: CopyMode;
  /** Is told of everything that is done, and throws to end it. */
  readonly step: (files: number, bytes: number) => void;
}

/** How much of a file is copied between two steps, in bytes. */
const CHUNK_BYTES = 4 * 2 ** 20;
/** What file systems answer that have no clones, or no (further) link for this file. */
const REFUSED = ['ENOTSUP', 'EOPNOTSUPP', 'EXDEV', 'EINVAL', 'ENOSYS', 'ENOTTY', 'EPERM', 'EMLINK'];

/**
 * Copies a tree into a new directory. When it resolves, all of it would survive a loss of power: files are synced before the directories that
 * name them. After a failure no file is begun, and those under way end with their next step.
 */
export async function copyTree(copy: TreeCopy): Promise<void> {
  const { from, to, plan } = copy;
  for (const { path } of plan.directories) {
    copy.step(0, 0);
    if (path !== '') await mkdir(join(to, path), 0o700);
  }
  for (const { path, target } of plan.links) {
    copy.step(0, 0);
    await symlink(target, join(to, path));
  }
  await concurrently(plan.files, CONCURRENCY, async ({ path, stats }, ended) => {
    const step = (files: number, bytes: number) => {
      ended.throwIfAborted();
      copy.step(files, bytes);
    };
    step(0, 0);
    await copyOne(join(from, path), join(to, path), stats, { ...copy, step });
    step(1, 0);
  });
  // Only now: a directory may be one that nothing can be made in.
  await concurrently(plan.directories, CONCURRENCY, async ({ path, stats }) => {
    copy.step(0, 0);
    await finish(await open(join(to, path), 'r'), stats);
  });
}

/** Whether the file system clones files: tried with the first one that has content, without a byte written. */
export async function canClone({ from, to, plan }: Pick<TreeCopy, 'from' | 'to' | 'plan'>): Promise<boolean> {
  const file = plan.files.find(({ stats }) => stats.size > 0);
  if (file === undefined) return false;
  const trial = join(to, 'clone');
  try {
    return await clone(join(from, file.path), trial);
  } finally {
    await rm(trial, { force: true });
  }
}

async function copyOne(from: string, to: string, stats: Stats, { mode, step }: TreeCopy): Promise<void> {
  if (mode === 'link' && (await isDone(link(from, to)))) return step(0, stats.size);
  if (mode === 'clone' && (await clone(from, to))) {
    step(0, stats.size);
    return finish(await open(to, 'r'), stats);
  }
  // Whatever has taken the file's place meanwhile, no link is followed.
  const source = await open(from, constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK);
  try {
    const copy = await open(to, 'wx', 0o600);
    try {
      await copyBytes(source, copy, stats.size, step);
    } catch (error) {
      await copy.close();
      throw error;
    }
    await finish(copy, stats);
  } finally {
    await source.close();
  }
}

/** As far as the file was long when it was looked at: one that grows faster than it is copied would never end. */
async function copyBytes(source: FileHandle, copy: FileHandle, size: number, step: TreeCopy['step']): Promise<void> {
  const buffer = Buffer.allocUnsafe(Math.min(CHUNK_BYTES, size));
  for (let at = 0; at < size; ) {
    const { bytesRead } = await source.read(buffer, 0, Math.min(buffer.length, size - at), at);
    if (bytesRead === 0) return;
    for (let written = 0; written < bytesRead; ) written += (await copy.write(buffer, written, bytesRead - written)).bytesWritten;
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
  await file.chmod(mode & 0o7777);
  await file.utimes(atimeMs / 1_000, mtimeMs / 1_000);
}

function clone(from: string, to: string): Promise<boolean> {
  return isDone(copyFile(from, to, constants.COPYFILE_EXCL | constants.COPYFILE_FICLONE_FORCE));
}

/** False where the file system refuses such a thing. */
export async function isDone(operation: Promise<void>): Promise<boolean> {
  try {
    await operation;
    return true;
  } catch (error) {
    if (REFUSED.includes(codeOf(error) ?? '')) return false;
    throw error;
  }
}
