import { type FSWatcher, watch } from 'node:fs';
import { stat } from 'node:fs/promises';
import { basename, join } from 'node:path';
import type { Clock } from '../../base/clock.js';
import { unless } from '../../base/files.js';
import { Changes, type Heed } from '../changes.js';

/**
 * Reports which files in a folder have changed. Keeps one watcher of the operating system, from the first
 * question until `close()`; it keeps the process alive only while a task waits.
 */
export class FolderWatch {
  readonly #changes = new Changes();
  /**
   * Files that have changed, and of which the size is not known yet: a file that changes often is looked at
   * once a round.
   */
  readonly #changed = new Set<string>();
  #measuring = false;
  #watcher: FSWatcher | undefined;
  #closed = false;

  /**
   * @param folder absolute; it need not exist yet
   * @param pollMs how long a wait is where watching is impossible, in milliseconds
   * @param isKey whether a file of this name is of interest
   */
  constructor(
    private readonly folder: string,
    private readonly clock: Clock,
    private readonly pollMs: number,
    private readonly isKey: (name: string) => boolean,
  ) {}

  /**
   * Resolves at the next change that `heed` wants; where the folder cannot be watched (it does not exist, the
   * system's watches are used up), after `pollMs`. Rejects with `signal.reason` when `signal` aborts.
   */
  async next(signal: AbortSignal, heed?: Heed): Promise<void> {
    signal.throwIfAborted();
    const watcher = this.#open();
    if (watcher === undefined) return this.clock.sleep(this.pollMs, signal);
    watcher.ref();
    try {
      await this.#changes.next(signal, heed);
    } finally {
      if (this.#changes.waiting === 0) watcher.unref();
    }
  }

  /** Gives the watcher up, and wakes all waiting tasks. Idempotent. */
  close(): void {
    this.#closed = true;
    this.#drop();
  }

  #open(): FSWatcher | undefined {
    if (this.#watcher !== undefined || this.#closed) return this.#watcher;
    try {
      this.#watcher = watch(this.folder, { persistent: false });
      this.#watcher.on('change', (_, name) => this.#notice(name));
      this.#watcher.on('error', () => this.#drop());
      return this.#watcher;
    } catch {
      return undefined;
    }
  }

  #notice(name: string | Buffer | null) {
    if (typeof name !== 'string') {
      this.#changes.announce();
    } else if (name === basename(this.folder)) {
      // Its own name: the folder itself was removed or renamed, and the watcher sees nothing any more.
      this.#drop();
    } else if (this.#changes.waiting > 0 && this.isKey(name)) {
      this.#changed.add(name);
      if (!this.#measuring) void this.#measure();
    }
  }

  /**
   * Reports what has changed, each with its size as of now: a file that changes again meanwhile is reported
   * again.
   */
  async #measure() {
    this.#measuring = true;
    for (const name of this.#changed) {
      this.#changed.delete(name);
      const found = await unless(['ENOENT'], stat(join(this.folder, name))).catch(() => null);
      // Where the file cannot be looked at, the waiting tasks may fare better.
      this.#changes.announce(found === null ? undefined : { key: name, size: found?.size });
    }
    this.#measuring = false;
  }

  #drop() {
    this.#watcher?.close();
    this.#watcher = undefined;
    this.#changes.announce();
  }
}
