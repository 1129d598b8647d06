import { constants, existsSync } from 'node:fs';
import { type FileHandle, open } from 'node:fs/promises';
import { basename, dirname, join } from 'node:path';
import { DataDirError } from './data-dir-error.js';

/**
 * Where Linux has the open files of this process: a path through one of them starts at the open directory,
 * whatever has its name by now.
 */
const DESCRIPTORS = '/proc/self/fd';
const hasDescriptors = existsSync(DESCRIPTORS);

/**
 * A path of an open file: for operations that Node has for paths only. `path` where the system has no such
 * thing.
 */
export const pathOf = ({ fd }: FileHandle, path: string) => (hasDescriptors ? `${DESCRIPTORS}/${fd}` : path);

/**
 * A tree of directories in which other users may work meanwhile. Each directory is opened in the one above,
 * which is open as well, and no symbolic link is followed: a program that puts a link, or another directory,
 * into the place of one leads no operation out of the tree.
 */
export class HeldTree {
  readonly #open = new Map<string, { readonly directory: Promise<FileHandle>; users: number }>();

  /** @param top its path, which is trusted, links and all */
  constructor(readonly top: string) {}

  /**
   * Calls `work` with a path of the directory at `directory`. Calls for it, and for what is below it, that
   * are made meanwhile find the same directory. Errors name paths below {@link top}. Once `work` has settled,
   * the path may be another file's: nothing that uses it may be under way any more.
   *
   * @throws {DataDirError} where the process is root, and the system has no paths of open directories
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

  /** The same for whatever is at `path`. Its last name is looked up by `work`. */
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
