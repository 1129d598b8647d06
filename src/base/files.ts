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

/** Whether an entry of that name exists. */
export async function exists(path: string): Promise<boolean> {
  return (await unless(['ENOENT'], lstat(path))) !== undefined;
}

/**
 * Makes a folder and its missing parents, and syncs the names of the new ones. (The `recursive` option of
 * `mkdir` never ends if the system answers ENOENT for a folder that no process may make, as in /proc.)
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

/** Makes a new file. Resolves once its content, though not its name, would survive a loss of power. */
export async function writeDurably(path: string, content: Buffer): Promise<void> {
  const file = await open(path, 'wx');
  try {
    await file.writeFile(content);
    await file.sync();
  } finally {
    await file.close();
  }
}

/** Error codes of systems that cannot sync a folder, or need not (Windows). */
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

/** A file that its own program cannot have written: it was placed there, or the disk lost data. */
export class Damage extends Error {
  /** @param what the kind of the entry that is there instead, or `damaged` */
  constructor(
    readonly path: string,
    readonly what: string,
  ) {
    super(`${path}: ${what}`);
  }
}

/**
 * The content of a file; undefined without an entry of that name. It follows no link, waits for no pipe, and
 * reads no device.
 *
 * @throws {@link Damage} when the entry is no regular file
 */
export async function readRegular(path: string): Promise<Buffer | undefined> {
  const { O_RDONLY, O_NOFOLLOW, O_NONBLOCK } = constants;
  let file: FileHandle;
  try {
    file = await open(path, O_RDONLY | O_NOFOLLOW | O_NONBLOCK);
  } catch (error) {
    if (codeOf(error) === 'ENOENT') return undefined;
    // A link and a socket cannot be opened, and another user's folder perhaps not.
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

/** The kind of an entry that is no regular file. */
export function kindOf(there: Stats | Dirent): string {
  if (there.isDirectory()) return 'directory';
  if (there.isSymbolicLink()) return 'symbolic link';
  if (there.isFIFO()) return 'FIFO';
  if (there.isSocket()) return 'socket';
  return there.isFile() ? 'file' : 'device';
}
