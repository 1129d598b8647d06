import { WakeUp } from '../../core/base/abort.js';
import type { Clock } from '../../core/base/clock.js';
import { Listeners } from '../../core/base/listeners.js';

/** How long the result of a scan counts as fresh, in milliseconds; longer if the pause after it is longer. */
const FRESH_MS = 2_000;
/**
 * The shortest and the longest pause after a scan that was aborted, in milliseconds. The first scan of a large
 * cluster takes minutes: a page that is loaded again must not wait for twice that time.
 */
const MIN_PAUSE_MS = 1_000;
const MAX_PAUSE_MS = 10_000;
/**
 * The pause after a scan, in multiples of its duration: in a large cluster this process must not be busy with
 * scans alone.
 */
export const PAUSE_FACTOR = 2;

/**
 * The pause after a scan that takes one or two requests to ZooKeeper for each znode: a multiple of its
 * duration, both in milliseconds.
 */
export const treePauseMs = (tookMs: number) => Math.max(2_000, 4 * tookMs);

/**
 * Repeats a scan as long as it has users: one scan at a time for all of them, with a pause between two.
 * Without users the scan is aborted, and a pause follows, too: callers that repeatedly ask and give up cost
 * the store no more than waiting ones.
 */
export class ScanLoop {
  #users = 0;
  #abort = new AbortController();
  #ended: Promise<void> = Promise.resolve();
  /** Until when the last scan is fresh, and when the next may begin, on the monotonic clock. */
  #freshUntil = Number.NEGATIVE_INFINITY;
  #due = Number.NEGATIVE_INFINITY;
  /** Called at the end of each scan, for the callers of `next`. */
  readonly #onScanned = new Listeners<void>();

  /**
   * @param scan rejects only with the reason of its signal
   * @param pauseMs the pause after a scan that took so long, both in milliseconds
   */
  constructor(
    private readonly scan: (signal: AbortSignal) => Promise<void>,
    private readonly pauseMs: (tookMs: number) => number,
    private readonly clock: Pick<Clock, 'monotonic' | 'sleep'>,
  ) {}

  /** Whether the last scan is recent enough for a caller that wants the current state. */
  get isFresh(): boolean {
    return this.clock.monotonic() <= this.#freshUntil;
  }

  /** Scans until the returned function is called. */
  use(): () => void {
    this.#users += 1;
    if (this.#users === 1) {
      this.#abort = new AbortController();
      const { signal } = this.#abort;
      this.#ended = this.#ended.then(() => this.#run(signal));
    }
    let isUsed = true;
    return () => {
      if (!isUsed) return;
      isUsed = false;
      this.#users -= 1;
      if (this.#users === 0) this.#abort.abort();
    };
  }

  /**
   * Resolves when the current scan, or otherwise the next one, has ended, and when the loop is closed.
   *
   * @throws `signal.reason`
   */
  async next(signal?: AbortSignal): Promise<void> {
    signal?.throwIfAborted();
    const scanned = new WakeUp();
    const ends = [this.#onScanned.add(scanned.wake), this.use()];
    try {
      await scanned.wait(undefined, signal);
    } finally {
      for (const end of ends) end();
    }
  }

  /** Aborts the current scan. The loop must not be used afterwards. */
  async close(): Promise<void> {
    this.#abort.abort();
    await this.#ended;
    this.#onScanned.notify();
  }

  async #run(signal: AbortSignal) {
    const { clock } = this;
    while (!signal.aborted) {
      const early = this.#due - clock.monotonic();
      if (early > 0) await clock.sleep(early, signal).catch(() => undefined);
      if (signal.aborted) return;
      const begun = clock.monotonic();
      try {
        await this.scan(signal);
        const now = clock.monotonic();
        const pauseMs = this.pauseMs(now - begun);
        this.#due = now + pauseMs;
        this.#freshUntil = now + Math.max(pauseMs, FRESH_MS);
      } catch (error) {
        if (!signal.aborted) throw error;
        const now = clock.monotonic();
        this.#due = now + Math.min(MAX_PAUSE_MS, Math.max(MIN_PAUSE_MS, PAUSE_FACTOR * (now - begun)));
        return;
      }
      this.#onScanned.notify();
    }
  }
}
