import { constants, type Dirent, type Stats } from 'node:fs';
import { type FileHandle, lstat, open } from 'node:fs/promises';
import { codeOf, unless } from './file-fault.js';

/** The store cannot have put there what stands there: somebody else has, or the disk lost something. */
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
 * The content of a file; undefined where there is nothing of that name. No link is followed, no pipe waited for, and no device read.
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
    // A link and a socket cannot be opened, and others' folders perhaps not.
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
