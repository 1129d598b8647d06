import { chmod, rename, rm, stat, writeFile } from 'node:fs/promises';
import { dirname } from 'node:path';
import type { RandomSource } from '../clock.js';
import { ConfigError, explain } from '../errors.js';

const OPTION = '--wait-file';

/**
 * A file that is there while a node id is held, for programs that wait for one: written all at once, never seen half-written.
 *
 * Not guaranteed: that it goes when this process is killed. What it says was true when it was written; whoever has to be sure now asks `/lease`.
 */
export class WaitFile {
  /** One change after the other, in their order. */
  #last: Promise<void> = Promise.resolve();

  private constructor(
    private readonly path: string,
    private readonly random: RandomSource,
    private readonly onFailure: (problem: string) => void,
  ) {}

  /**
   * Removes what an earlier process has left.
   *
   * @param onFailure is told, in one line, what keeps the file from being written or removed later
   * @throws {ConfigError} when there is no such folder, the path is a folder itself, or what is left cannot be removed
   */
  static async open(path: string, random: RandomSource, onFailure: (problem: string) => void): Promise<WaitFile> {
    const fail = (why: string) => new ConfigError(OPTION, path, `the path of a file in a folder that exists (${why})`);
    if (path === '') throw fail('it is empty');
    const parent = await stat(dirname(path)).catch(() => undefined);
    if (!parent?.isDirectory()) throw fail(`${dirname(path)} is no folder`);
    if ((await stat(path).catch(() => undefined))?.isDirectory()) throw fail('this is a folder');
    try {
      await rm(path, { force: true });
    } catch (error) {
      throw fail(explain(error));
    }
    return new WaitFile(path, random, onFailure);
  }

  /** Resolves when the file says this, or cannot. Never rejects. */
  write(text: string): Promise<void> {
    return this.#next('written', async () => {
      const draft = `${this.path}.${this.random.hex(4)}`;
      try {
        await writeFile(draft, text, { flag: 'wx' });
        // Whatever the umask: those who wait may run as other users.
        await chmod(draft, 0o644);
        await rename(draft, this.path);
      } catch (error) {
        await rm(draft, { force: true }).catch(() => undefined);
        throw error;
      }
    });
  }

  /** Resolves when the file is gone, or cannot. Never rejects. */
  remove(): Promise<void> {
    return this.#next('removed', () => rm(this.path, { force: true }));
  }

  #next(done: string, act: () => Promise<void>): Promise<void> {
    this.#last = this.#last.then(act).catch((error: unknown) => this.onFailure(`${this.path} could not be ${done}: ${explain(error)}`));
    return this.#last;
  }
}
