import { constants, type Dirent, type Stats } from 'node:fs';
import { lstat, mkdir, open } from 'node:fs/promises';
import { dirname } from 'node:path';

/**
 * The operating system's code of a failed file operation, for example `ENOENT`; undefined for every other
 * error.
 */
export function codeOf(error: unknown): string | undefined {
  // In a context of its own, as Jest has, Node's errors are no instances of `Error`.
  const { code, syscall }: NodeJS.ErrnoException = Object(error);
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
export async function writeDurably(path: string, content: Buffer | string, mode?: number): Promise<void> {
  const file = await open(path, 'wx', mode);
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

/** The bound of {@link readRegular} for a file with a few values, in bytes. */
export const SMALL_FILE = 4_096;

/** A file that its own program cannot have written: it was placed there, or the disk lost data. */
export class Damage extends Error {
  /** @param what the kind of the entry that is there instead, `damaged`, or what is wrong with its size */
  constructor(
    readonly path: string,
    readonly what: string,
  ) {
    super(`${path}: ${what}`);
  }
}

/**
 * The content of a file that may be another user's; undefined without an entry of that name. It follows no
 * link, waits for no pipe, reads no device, and never takes more memory than `maxBytes`, however large the
 * file is, or becomes.
 *
 * @throws {@link Damage} when the entry is no regular file, or a larger one
 */
export async function readRegular(path: string, maxBytes: number): Promise<Buffer | undefined> {
  try {
    return await readFollowing(path, maxBytes, constants.O_NOFOLLOW);
  } catch (error) {
    if (codeOf(error) === 'ENOENT') return undefined;
    // A link and a socket cannot be opened, and another user's folder perhaps not.
    const there = await unless(['ENOENT', 'ENOTDIR'], lstat(path));
    if (there !== undefined && !there.isFile()) throw new Damage(path, kindOf(there));
    throw error;
  }
}

/**
 * The same for a file that the user has named, which a link may lead to.
 * @throws {@link Damage}; the system's error where there is none
 */
export async function readFollowing(path: string, maxBytes: number, flags = 0): Promise<Buffer> {
  const file = await open(path, constants.O_RDONLY | constants.O_NONBLOCK | flags);
  try {
    const there = await file.stat();
    if (!there.isFile()) throw new Damage(path, kindOf(there));
    if (there.size > maxBytes) throw new Damage(path, `file of more than ${maxBytes} bytes`);
    // Its size then, even if it grows. Some file systems show none.
    const buffer = Buffer.alloc(there.size || SMALL_FILE);
    let length = 0;
    for (let bytesRead = -1; bytesRead !== 0 && length < buffer.length; length += bytesRead)
      ({ bytesRead } = await file.read(buffer, length, buffer.length - length, length));
    return buffer.subarray(0, length);
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
