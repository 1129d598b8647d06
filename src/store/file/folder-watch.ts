import { type FSWatcher, watch } from 'node:fs';
import { basename } from 'node:path';
import type { Clock } from '../../clock.js';
import { Changes } from '../changes.js';

/**
 * Tells that names in a folder have changed. Keeps one watcher of the operating system, from the first question until `close()`; it
 * keeps the process alive only while somebody waits.
 */
export class FolderWatch {
  readonly #folder: string;
  readonly #clock: Clock;
  readonly #pollMs: number;
  readonly #changes = new Changes();
  #watcher: FSWatcher | undefined;
  #closed = false;

  /**
   * @param folder absolute; it need not exist yet
   * @param clock for the wait where watching is impossible
   * @param pollMs how long that wait is, in milliseconds
   */
  constructor(folder: string, clock: Clock, pollMs: number) {
    this.#folder = folder;
    this.#clock = clock;
    this.#pollMs = pollMs;
  }

  /**
   * Resolves at the next change; where the folder cannot be watched (it does not exist, the system's watches are used up), after `pollMs`.
   * Rejects with `signal.reason` when `signal` aborts.
   */
  async next(signal: AbortSignal): Promise<void> {
    signal.throwIfAborted();
    const watcher = this.#open();
    if (watcher === undefined) return this.#clock.sleep(this.#pollMs, signal);
    watcher.ref();
    try {
      await this.#changes.next(signal);
    } finally {
      if (this.#changes.waiting === 0) watcher.unref();
    }
  }

  /** Gives the watcher up; whoever waits is woken. Idempotent. */
  close(): void {
    this.#closed = true;
    this.#drop();
  }

  #open(): FSWatcher | undefined {
    if (this.#watcher !== undefined || this.#closed) return this.#watcher;
    try {
      const watcher = watch(this.#folder, { persistent: false });
      watcher.on('change', (_, name) => {
        // Its own name: the folder itself was removed or renamed, and the watcher sees nothing any more.
        if (name === basename(this.#folder)) this.#drop();
        else this.#changes.announce();
      });
      watcher.on('error', () => this.#drop());
      this.#watcher = watcher;
      return watcher;
    } catch {
      return undefined;
    }
  }

  #drop(): void {
    this.#watcher?.close();
    this.#watcher = undefined;
    this.#changes.announce();
  }
}
