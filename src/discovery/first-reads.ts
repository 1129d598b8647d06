import type { Clock } from '../clock.js';
import type { ZooKeeper } from '../zookeeper/zookeeper.js';

export interface FirstReadsOptions {
  readonly zookeeper: Pick<ZooKeeper, 'state'>;
  readonly clock: Clock;
  /** Called once, when for the first time nothing is left to be read. */
  readonly onWhole: () => void;
}

/** How long a znode may refuse to be read before it is gone on without, in seconds with a connection. */
export const PATIENCE_S = 5;

/**
 * Knows which znodes of a tree are watched but have not been read yet, so that it can be told when the whole of it has been seen. One
 * that refuses to be read, for want of permission for instance, is given up after 5 seconds with a connection; its watch may go on.
 */
export class FirstReads {
  readonly #options: FirstReadsOptions;
  readonly #open = new Map<string, { seconds: number; readonly giveUp: () => boolean }>();
  readonly #closing = new AbortController();
  #counting = false;
  #whole = false;

  constructor(options: FirstReadsOptions) {
    this.#options = options;
  }

  /** True from when everything had been read for the first time. */
  get whole(): boolean {
    return this.#whole;
  }

  /**
   * Something is to be read.
   *
   * @param giveUp called when it refuses to be read, every 5 seconds until it answers true: gone on without
   */
  begin(path: string, giveUp: () => boolean): void {
    this.#open.set(path, { seconds: 0, giveUp });
    void this.#count();
  }

  /** It has been read, or need not be any more. */
  end(path: string): void {
    this.#open.delete(path);
    if (this.#whole || this.#open.size > 0 || this.#closing.signal.aborted) return;
    this.#whole = true;
    this.#options.onWhole();
  }

  /** Counts nothing any more; `whole` stays as it is. */
  close(): void {
    this.#closing.abort();
  }

  async #count(): Promise<void> {
    const { zookeeper, clock } = this.#options;
    if (this.#counting) return;
    this.#counting = true;
    try {
      while (this.#open.size > 0) {
        await clock.sleep(1_000, this.#closing.signal);
        if (zookeeper.state.status !== 'connected') continue;
        for (const [path, read] of this.#open) {
          read.seconds += 1;
          if (read.seconds % PATIENCE_S === 0 && read.giveUp()) this.end(path);
        }
      }
    } catch (error) {
      if (!this.#closing.signal.aborted) throw error;
    } finally {
      this.#counting = false;
    }
  }
}
