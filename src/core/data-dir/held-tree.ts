import { constants, existsSync } from 'node:fs';
import { type FileHandle, open } from 'node:fs/promises';
import { basename, dirname, join } from 'node:path';
import { DataDirError } from './data-dir-error.js';

/**
 * The directory of this process's open files on Linux. A path through one of them starts at the open
 * directory, whatever has its name by now.
 */
const DESCRIPTORS = '/proc/self/fd';
const hasDescriptors = existsSync(DESCRIPTORS);

/**
 * A path of an open file, for operations that Node offers for paths only; `path` on a system without such
 * paths.
 */
export const pathOf = ({ fd }: FileHandle, path: string) => (hasDescriptors ? `${DESCRIPTORS}/${fd}` : path);

/**
 * A tree of directories in which other users may work at the same time. Each directory is opened in its
 * parent, which is open, too, and no symbolic link is followed. So a program that replaces a directory by a
 * link, or by another directory, leads no operation out of the tree.
 */
export class HeldTree {
  readonly #open = new Map<string, { readonly directory: Promise<FileHandle>; users: number }>();

  /** @param top its path, which is trusted, including its links */
  constructor(readonly top: string) {}

  /**
   * Calls `work` with a path of the directory at `directory`. Meanwhile, calls for it and for paths below it
   * find the same directory. Errors name paths below {@link top}. Once `work` has settled, the path may
   * belong to another file: no operation may still use it.
   *
   * @throws {DataDirError} when the process is root, and the system has no paths of open directories
   */
  async within<T>(directory: string, work: (at: string) => Promise<T>): Promise<T> {
    const path = join(this.top, directory);
    const held = this.#open.get(path) ?? { directory: this.#openAt(directory), users: 0 };
    this.#open.set(path, held);
    held.users += 1;
    let at = path;
    try {
      at = pathOf(await held.directory, path);
      return await work(at);
    } catch (error) {
      if (at !== path && error instanceof Error)
        error.message = error.message.replaceAll(new RegExp(`${at}(?!\\d)`, 'g'), () => path);
      throw error;
    } finally {
      held.users -= 1;
      if (held.users === 0) {
        this.#open.delete(path);
        await (await held.directory).close();
      }
    }
  }

  /** Like {@link within}, for the entry at `path`. `work` looks up its last name. */
  entry<T>(path: string, work: (at: string) => Promise<T>): Promise<T> {
    return this.within(dirname(path), (at) => work(join(at, basename(path))));
  }

  #openAt(directory: string): Promise<FileHandle> {
    const { O_RDONLY, O_DIRECTORY, O_NOFOLLOW } = constants;
    if (directory !== '.')
      return this.entry(directory, (at) => open(at, O_RDONLY | O_DIRECTORY | O_NOFOLLOW));
    if (!hasDescriptors && process.geteuid?.() === 0)
      throw new DataDirError(
        `as root, data directories need ${DESCRIPTORS}, which this system does not have: run nodelease as another user`,
      );
    return open(this.top, O_RDONLY | O_DIRECTORY);
  }
}
