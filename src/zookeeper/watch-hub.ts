import { backoffMs } from '../base/backoff.js';
import type { Clock, RandomSource } from '../clock.js';
import { StandingWatch, type WatchedRead, type WatchRunner } from './standing-watch.js';
import type { Watch } from './zookeeper.js';

export interface WatchHubOptions {
  readonly clock: Clock;
  readonly random: RandomSource;
  /** Whether a request could be sent now. */
  readonly isConnected: () => boolean;
}

/** How many watches read at a time: after a reconnect all of them have to. */
const READS_AT_ONCE = 64;
/** Between the reads of a watch that fails. */
const RETRY_MS = { first: 100, max: 5_000 };

/** All standing watches of a client: tells them what may have changed, and lets them read in turn. */
export class WatchHub implements WatchRunner {
  readonly #watches = new Map<string, Set<StandingWatch<unknown>>>();
  #queue = new Set<StandingWatch<unknown>>();
  #reading = 0;
  readonly #over = new AbortController();

  constructor(private readonly options: WatchHubOptions) {}

  /** How many watches stand. */
  get size(): number {
    let sum = 0;
    for (const { size } of this.#watches.values()) sum += size;
    return sum;
  }

  watch<S>(watched: WatchedRead<S>, listener: (state: S) => void): Watch {
    const watch = new StandingWatch(watched, listener, this);
    if (this.#over.signal.aborted) return watch;
    const others = this.#watches.get(watched.path) ?? new Set();
    this.#watches.set(watched.path, others.add(watch as StandingWatch<unknown>));
    watch.invalidate();
    return watch;
  }

  /** A one-shot watch on a path has fired. One that was set for a watch that is closed by now finds nobody. */
  onChanged(path: string): void {
    for (const watch of this.#watches.get(path) ?? []) watch.invalidate();
  }

  /** There is a connection. The one-shot watches went with the last one, and whatever happened since has not been told. */
  onConnected(): void {
    for (const watches of this.#watches.values()) for (const watch of watches) watch.invalidate();
    this.#pump();
  }

  close(): void {
    this.#over.abort();
    for (const watches of [...this.#watches.values()]) for (const watch of [...watches]) watch.close();
  }

  enqueue(watch: StandingWatch<unknown>): void {
    this.#queue.add(watch);
    this.#pump();
  }

  forget(watch: StandingWatch<unknown>): void {
    this.#queue.delete(watch);
    const watches = this.#watches.get(watch.path);
    watches?.delete(watch);
    if (watches?.size === 0) this.#watches.delete(watch.path);
  }

  async backOff(failures: number): Promise<void> {
    const { clock, random } = this.options;
    await clock.sleep(backoffMs(RETRY_MS, failures + 1, random), this.#over.signal);
  }

  #pump(): void {
    for (const watch of this.#queue) {
      if (this.#reading >= READS_AT_ONCE || !this.options.isConnected()) return;
      this.#queue.delete(watch);
      this.#reading += 1;
      void watch.run().finally(() => {
        this.#reading -= 1;
        this.#pump();
      });
    }
  }
}
