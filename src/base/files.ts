import { constants, type Dirent, type Stats } from 'node:fs';
import { type FileHandle, lstat, mkdir, open } from 'node:fs/promises';
import { dirname } from 'node:path';

/**
 * The operating system's code of a failed file operation, for example `ENOENT`; undefined for every other
 * error.
 */
export function codeOf(error: unknown): string | undefined {
  if (!(error instanceof Error)) return undefined;
  const { code, syscall } = error as NodeJS.ErrnoException;
  return syscall === undefined ? undefined : code;
}

/** What `operation` resolves to, or undefined when it fails with one of these codes. */
export async function unless<T>(codes: readonly string[], operation: Promise<T>): Promise<T | undefined> {
  try {
    return await operation;
  } catch (error) {
    if (codes.includes(codeOf(error) ?? '')) return undefined;
    throw error;
  }
}

/** Whether there is something of that name. */
export async function exists(path: string): Promise<boolean> {
  return (await unless(['ENOENT'], lstat(path))) !== undefined;
}

/**
 * Makes a folder and those above it that are missing, and syncs the names of those it made. (The `recursive`
 * option of `mkdir` never ends where the system answers ENOENT for a folder that no process may make, as in
 * /proc.)
 */
export async function makeFolder(path: string): Promise<void> {
  try {
    await mkdir(path);
  } catch (error) {
    const above = dirname(path);
    if (codeOf(error) === 'EEXIST') return;
    if (codeOf(error) !== 'ENOENT' || above === path) throw error;
    await makeFolder(above);
    await unless(['EEXIST'], mkdir(path));
  }
  await unless(['EACCES'], syncFolder(dirname(path)));
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
export const CANNOT_SYNC_FOLDERS = ['EISDIR', 'EPERM', 'EINVAL', 'ENOTSUP', 'EBADF'];

/**
 * Resolves once the names in the folder would survive a loss of power, as far as the file system offers that.
 */
export async function syncFolder(path: string): Promise<void> {
  const sync = async () => {
    const folder = await open(path, 'r');
    await folder.sync().finally(() => folder.close());
  };
  await unless(CANNOT_SYNC_FOLDERS, sync());
}

/** A file that the process which keeps it cannot have written: someone placed it there, or the disk lost data. */
export class Damage extends Error {
  /** @param what stands there instead, or `damaged` */
  constructor(
    readonly path: string,
    readonly what: string,
  ) {
    super(`${path}: ${what}`);
  }
}

/**
 * The content of a file; undefined where there is nothing of that name. No link is followed, no pipe waited
 * for, and no device read.
 *
 * @throws {@link Damage} when there is something else than a regular file
 */
export async function readRegular(path: string): Promise<Buffer | undefined> {
  const { O_RDONLY, O_NOFOLLOW, O_NONBLOCK } = constants;
  let file: FileHandle;
  try {
    file = await open(path, O_RDONLY | O_NOFOLLOW | O_NONBLOCK);
  } catch (error) {
    if (codeOf(error) === 'ENOENT') return undefined;
    // A link and a socket cannot be opened, and folders of others perhaps not.
    const there = await unless(['ENOENT', 'ENOTDIR'], lstat(path));
    if (there !== undefined && !there.isFile()) throw new Damage(path, kindOf(there));
    throw error;
  }
  try {
    const there = await file.stat();
    if (!there.isFile()) throw new Damage(path, kindOf(there));
    return await file.readFile();
  } finally {
    await file.close();
  }
}

/** What something is that is no regular file. */
export function kindOf(there: Stats | Dirent): string {
  if (there.isDirectory()) return 'directory';
  if (there.isSymbolicLink()) return 'symbolic link';
  if (there.isFIFO()) return 'FIFO';
  if (there.isSocket()) return 'socket';
  return there.isFile() ? 'file' : 'device';
}
