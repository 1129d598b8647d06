import { notify } from './listeners.js';
import type { Watch } from './zookeeper.js';
import { isFault } from './zookeeper-error.js';

/** How to read what is watched. */
export interface WatchedRead<S> {
  /** The path on the servers. */
  readonly path: string;
  /** Reads the present state, and leaves a one-shot watch on it, so that no later change goes unnoticed. */
  read(): Promise<S>;
  /** Equal for equal states. */
  fingerprint(state: S): string;
}

/** What a standing watch needs of whoever runs it. */
export interface WatchRunner {
  /** Has the watch read as soon as there is a connection and its turn has come. */
  enqueue(watch: StandingWatch<unknown>): void;
  /** Waits some time that grows with `failures`. Rejects when there is no more sense in it. */
  backOff(failures: number): Promise<void>;
  /** The watch has been closed. */
  forget(watch: StandingWatch<unknown>): void;
}

/**
 * A watch that stays, made of ZooKeeper's one-shot ones: whenever something may have changed, it reads again, and that read sets the next
 * one-shot watch. One read at a time; what happens meanwhile leads to another.
 */
export class StandingWatch<S> implements Watch {
  readonly first: Promise<void>;
  #told: string | undefined;
  #stale = false;
  #isQueued = false;
  #isReading = false;
  #failures = 0;
  #closed = false;
  #onFirst: () => void = () => undefined;

  constructor(
    private readonly watched: WatchedRead<S>,
    private readonly listener: (state: S) => void,
    private readonly runner: WatchRunner,
  ) {
    this.first = new Promise((resolve) => {
      this.#onFirst = resolve;
    });
  }

  /** The path on the servers. */
  get path(): string {
    return this.watched.path;
  }

  /** What was read may be out of date. */
  invalidate(): void {
    this.#stale = true;
    if (this.#closed || this.#isReading || this.#isQueued) return;
    this.#isQueued = true;
    this.runner.enqueue(this as StandingWatch<unknown>);
  }

  /** Its turn has come. Never rejects; resolves when the next one may read. */
  async run(): Promise<void> {
    this.#isQueued = false;
    if (this.#closed) return;
    this.#isReading = true;
    this.#stale = false;
    try {
      this.#tell(await this.watched.read());
      this.#failures = 0;
    } catch (error) {
      this.#failed(error);
    } finally {
      this.#isReading = false;
    }
    if (this.#stale) this.invalidate();
  }

  close(): void {
    if (this.#closed) return;
    this.#closed = true;
    this.runner.forget(this as StandingWatch<unknown>);
  }

  #tell(state: S): void {
    if (this.#closed) return;
    const fingerprint = this.watched.fingerprint(state);
    if (this.#told !== fingerprint) {
      this.#told = fingerprint;
      notify(this.listener, state);
    }
    this.#onFirst();
  }

  #failed(error: unknown): void {
    // The next connection has every watch read again. What fails while there is one is repeated a little later.
    if (isFault(error, 'connection-loss', 'session-expired', 'closed')) return;
    this.#failures += 1;
    this.runner.backOff(this.#failures).then(
      () => this.invalidate(),
      () => undefined,
    );
  }
}
