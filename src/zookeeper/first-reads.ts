import type { Clock } from '../base/clock.js';
import { concurrently } from '../base/concurrently.js';
import type { ZooKeeper } from './zookeeper.js';
import { isFault } from './zookeeper-error.js';

export interface FirstReadsOptions {
  readonly zookeeper: Pick<ZooKeeper, 'state' | 'children'>;
  readonly clock: Clock;
  /** Called once, when for the first time nothing is left to be read. */
  readonly onWhole: () => void;
  /**
   * Called when the servers refuse to let a znode be read, about every 5 seconds until it returns true: then
   * the znode is not waited for any more.
   */
  readonly onRefused: (path: string) => boolean;
}

/**
 * After how many seconds with a connection the servers are asked whether they refuse to let a znode be read.
 */
export const REFUSED_AFTER_S = 5;

/** How many are asked for at a time: few, so that a slow link is left to the reads themselves. */
const ASKED_AT_ONCE = 8;
const ANSWER_TIMEOUT_MS = 5_000;

interface Waiting {
  /** For how many seconds with a connection, since the servers were asked last. */
  seconds: number;
}

/**
 * Knows which watched znodes have not been read yet, and says when all have. A znode that the servers refuse
 * to let be read, for lack of permission for instance, is given up after 5 seconds with a connection; its
 * watch may go on. A slow read is never given up: a watch does not distinguish the two, so the servers are
 * asked.
 */
export class FirstReads {
  readonly #open = new Map<string, Waiting>();
  readonly #closing = new AbortController();
  #counting = false;
  #whole = false;

  constructor(private readonly options: FirstReadsOptions) {}

  /** A znode is to be read. */
  begin(path: string): void {
    this.#open.set(path, { seconds: 0 });
    if (!this.#counting) void this.#count();
  }

  /** It has been read, or need not be any more. */
  end(path: string): void {
    this.#open.delete(path);
    if (this.#whole || this.#open.size > 0 || this.#closing.signal.aborted) return;
    this.#whole = true;
    this.options.onWhole();
  }

  /** Counts nothing any more. */
  close(): void {
    this.#closing.abort();
  }

  async #count(): Promise<void> {
    const { zookeeper, clock } = this.options;
    const { signal } = this.#closing;
    this.#counting = true;
    while (this.#open.size > 0 && !signal.aborted) {
      await clock.sleep(1_000, signal).catch(() => undefined);
      if (zookeeper.state.status !== 'connected') continue;
      for (const waiting of this.#open.values()) waiting.seconds += 1;
      const due = [...this.#open].filter(([, { seconds }]) => seconds >= REFUSED_AFTER_S);
      await concurrently(due, ASKED_AT_ONCE, ([path, waiting]) => this.#ask(path, waiting));
    }
    this.#counting = false;
  }

  async #ask(path: string, waiting: Waiting): Promise<void> {
    const { zookeeper, onRefused } = this.options;
    const { signal } = this.#closing;
    const isOpen = () => this.#open.get(path) === waiting && !signal.aborted;
    if (!isOpen()) return;
    waiting.seconds = 0;
    try {
      // Listing takes the same permission as reading the data, and has a smaller reply.
      await zookeeper.children(path, { timeoutMs: ANSWER_TIMEOUT_MS, signal });
    } catch (error) {
      const isRefused = !isFault(error, 'timeout', 'connection-loss', 'session-expired', 'aborted', 'closed');
      // It may have been read meanwhile, or have gone.
      if (isRefused && isOpen() && onRefused(path)) this.end(path);
    }
  }
}
