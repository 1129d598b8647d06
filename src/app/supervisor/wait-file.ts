import { lstat, open, rename, rm } from 'node:fs/promises';
import type { RandomSource } from '../../core/base/clock.js';
import { ConfigError, explain } from '../../core/base/errors.js';
import { objectIn } from '../../core/base/fields.js';
import { Damage, readRegular, unless } from '../../core/base/files.js';

/** More than any wait file has, in bytes. */
const MAX_BYTES = 65_536;

/**
 * A file that is there while a node id is held, for programs that wait for one: written all at once, never
 * seen half-written.
 *
 * Not guaranteed: that it goes when this process is killed. What it says was true when it was written; a
 * program that has to be sure now asks `/lease`.
 */
export class WaitFile {
  /** One change after the other, in their order. */
  #last: Promise<unknown> = Promise.resolve();
  /** What this process has written last. */
  #written: string | undefined;

  private constructor(
    private readonly path: string,
    private readonly random: RandomSource,
    private readonly onFailure: (problem: string) => void,
  ) {}

  /**
   * Makes sure that the file can be written.
   *
   * @param onFailure gets, in one line, what keeps the file from being written or removed later
   * @throws {ConfigError} when nothing can be written there, or something else than a wait file is there,
   * which is left alone
   */
  static async open(
    path: string,
    random: RandomSource,
    onFailure: (problem: string) => void,
  ): Promise<WaitFile> {
    if (path === '') throw unusable(path, 'it is empty');
    const file = new WaitFile(path, random, onFailure);
    await file.#checkLeftOver();
    // Tried now: programs that wait for the file later learn nothing.
    await file.#orUnusable(file.#withDraft('', async () => undefined));
    return file;
  }

  /**
   * Removes a file that an earlier process has left. Call it when no other process can be at work here: the
   * file of a process that still runs looks the same.
   *
   * @throws {ConfigError} when it cannot be removed, or something else has come there, which is left alone
   */
  async removeLeftOver(): Promise<void> {
    await this.#checkLeftOver();
    await this.#orUnusable(rm(this.path, { force: true }));
  }

  /** Resolves to true when the file says this, and to false when it cannot. Never rejects. */
  write(text: string): Promise<boolean> {
    return this.#next('written', async () => {
      await this.#withDraft(text, (draft) => rename(draft, this.path));
      this.#written = text;
    });
  }

  /**
   * Resolves to true when what this process wrote is gone, or another process' has taken its place, and to
   * false when it cannot. Never rejects.
   */
  remove(): Promise<boolean> {
    return this.#next('removed', async () => {
      const own = this.#written;
      if (own !== undefined && (await textIn(this.path)) === own) await rm(this.path, { force: true });
    });
  }

  /** A file that is named here by mistake may be its owner's only copy. */
  async #checkLeftOver(): Promise<void> {
    if (!(await this.#orUnusable(isLeftOver(this.path))))
      throw unusable(this.path, 'something else is there, and left alone');
  }

  #orUnusable<T>(step: Promise<T>): Promise<T> {
    return step.catch((error: unknown) => {
      throw unusable(this.path, explain(error));
    });
  }

  /** Writes a file next to it that says this, for `use` to move; what is left of it is removed. */
  async #withDraft(text: string, use: (draft: string) => Promise<void>): Promise<void> {
    const draft = `${this.path}.${this.random.hex(4)}`;
    try {
      // Through one handle: another user of the folder can put something else at the path at any time.
      const file = await open(draft, 'wx');
      try {
        await file.writeFile(text);
        // Whatever the umask: programs that wait may run as other users.
        await file.chmod(0o644);
      } finally {
        // Before it is moved: some file systems report only now that nothing could be written.
        await file.close();
      }
      await use(draft);
    } finally {
      await rm(draft, { force: true }).catch(() => undefined);
    }
  }

  #next(done: string, act: () => Promise<void>): Promise<boolean> {
    const isDone = this.#last.then(act).then(
      () => true,
      (error: unknown) => {
        this.onFailure(`${this.path} could not be ${done}: ${explain(error)}`);
        return false;
      },
    );
    this.#last = isDone;
    return isDone;
  }
}

function unusable(path: string, why: string): ConfigError {
  return new ConfigError(
    '--wait-file',
    path,
    `the path of a file in a folder that this user may write to (${why})`,
  );
}

/**
 * Whether there is nothing but what a process of ours may have left: an object that names a node id,
 * something empty, or a link.
 */
async function isLeftOver(path: string): Promise<boolean> {
  const there = await unless(['ENOENT'], lstat(path));
  // A link is only unlinked: what it leads to stays.
  if (there === undefined || there.isSymbolicLink()) return true;
  const text = await textIn(path);
  return text === '' || (text !== undefined && 'nodeId' in (objectIn(text) ?? {}));
}

/**
 * What a file says; undefined where there is none, or one that is larger than a wait file, or something else
 * than a file.
 */
async function textIn(path: string): Promise<string | undefined> {
  // Neither a link is followed nor is a pipe waited for, whatever another user of the folder puts there.
  try {
    return (await readRegular(path, MAX_BYTES))?.toString();
  } catch (error) {
    if (error instanceof Damage) return undefined;
    throw error;
  }
}
