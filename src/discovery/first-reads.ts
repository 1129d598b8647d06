import type { Clock } from '../clock.js';
import { concurrently } from '../lease/concurrently.js';
import type { ZooKeeper } from '../zookeeper/zookeeper.js';
import { isFault } from '../zookeeper/zookeeper-error.js';

export interface FirstReadsOptions {
  readonly zookeeper: Pick<ZooKeeper, 'state' | 'children'>;
  readonly clock: Clock;
  /** Called once, when for the first time nothing is left to be read. */
  readonly onWhole: () => void;
}

/** For how long a znode may go unread before the servers are asked whether they refuse it, in seconds with a connection. */
export const PATIENCE_S = 5;

/** How many are asked for at a time: where the link is slow, it is to be left to the reads that are waited for. */
const ASKED_AT_ONCE = 8;
const ANSWERS_WITHIN_MS = 5_000;

/**
 * Knows which znodes of a tree are watched but have not been read yet, so that it can be told when the whole of it has been seen. One
 * that the servers refuse to let be read, for want of permission for instance, is given up after 5 seconds with a connection; its watch may go
 * on. What is merely slow is never given up: a watch tells nothing of its turn among many, so the servers are asked.
 */
export class FirstReads {
  readonly #open = new Map<string, { seconds: number; readonly giveUp: () => boolean }>();
  readonly #closing = new AbortController();
  #counting = false;
  #whole = false;

  constructor(private readonly options: FirstReadsOptions) {}

  /** True from when everything had been read for the first time. */
  get whole(): boolean {
    return this.#whole;
  }

  /**
   * Something is to be read.
   *
   * @param giveUp called when the servers refuse that, every 5 seconds or so until it answers true: gone on without
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
    this.options.onWhole();
  }

  /** Counts nothing any more; `whole` stays as it is. */
  close(): void {
    this.#closing.abort();
  }

  async #count(): Promise<void> {
    const { zookeeper, clock } = this.options;
    if (this.#counting) return;
    this.#counting = true;
    try {
      while (this.#open.size > 0) {
        await clock.sleep(1_000, this.#closing.signal);
        if (zookeeper.state.status !== 'connected') continue;
        const due: string[] = [];
        for (const [path, waiting] of this.#open) {
          waiting.seconds += 1;
          if (waiting.seconds >= PATIENCE_S) due.push(path);
        }
        await concurrently(due, ASKED_AT_ONCE, (path) => this.#askFor(path));
      }
    } catch (error) {
      if (!this.#closing.signal.aborted) throw error;
    } finally {
      this.#counting = false;
    }
  }

  async #askFor(path: string): Promise<void> {
    const { signal } = this.#closing;
    const waiting = this.#open.get(path);
    if (waiting === undefined || signal.aborted) return;
    waiting.seconds = 0;
    try {
      // The names take the same permission as the data, and are fewer: whoever is asked over a slow link has little to send.
      await this.options.zookeeper.children(path, { timeoutMs: ANSWERS_WITHIN_MS, signal });
    } catch (error) {
      if (isFault(error, 'timeout', 'connection-loss', 'session-expired', 'aborted', 'closed')) return;
      // It may have been read meanwhile, or have gone.
      if (this.#open.get(path) === waiting && !signal.aborted && waiting.giveUp()) this.end(path);
    }
  }
}
