import type { Worker } from 'node:worker_threads';
import { withTimeout } from '../../../core/base/abort.js';
import type { Clock } from '../../../core/base/clock.js';

/** A thread that was started. */
export interface StartedThread {
  readonly worker: Worker;
  /** Resolves when it does its work; rejects when it never will. */
  readonly ready: Promise<void>;
}

export interface RestartingWorkerOptions {
  readonly clock: Clock;
  /** Starts the thread, at first and whenever it has ended. */
  readonly start: () => StartedThread;
  /** It has ended without being asked to, and is started again after that many milliseconds. */
  readonly onFailure: (failure: unknown, againInMs: number) => void;
}

/**
 * How long it takes until a thread is started again, in milliseconds: twice as long after each failure within
 * `settled` of a start.
 */
const PAUSE_MS = { first: 100, max: 10_000, settled: 60_000 } as const;
/**
 * How long a thread may take to end by itself, as for requests under way, before it is ended, in
 * milliseconds.
 */
const CLOSE_TIMEOUT_MS = 1_500;

/**
 * A thread that is started again when it dies: of an uncaught error, or for want of memory. Its failures
 * never end the process.
 */
export class RestartingWorker {
  readonly #closing = new AbortController();
  /** Undefined where the thread could not be started. */
  #worker: Worker | undefined;
  /** Resolves when the thread is gone, to why. */
  #ended: Promise<unknown> = Promise.resolve();

  private constructor(private readonly options: RestartingWorkerOptions) {}

  /** Resolves when the thread does its work for the first time. @throws whatever kept it from that */
  static async start(options: RestartingWorkerOptions): Promise<RestartingWorker> {
    const thread = new RestartingWorker(options);
    await new Promise<void>((resolve, reject) => {
      thread.#ended = thread.#run(resolve);
      void thread.#ended.then(reject);
    });
    void thread.#keep();
    return thread;
  }

  /** Ends the thread, for good: sends it `{ type: 'close' }`. Never rejects. */
  async close(): Promise<void> {
    this.#closing.abort();
    if (this.#worker === undefined) return;
    this.#worker.postMessage({ type: 'close' });
    await withTimeout(this.options.clock, CLOSE_TIMEOUT_MS, this.#ended);
    // Not waited for: a thread that does not come to its end is stopped with the process.
    void this.#worker.terminate();
  }

  /** Starts the thread again whenever it has ended. */
  async #keep() {
    const { clock, onFailure } = this.options;
    const { signal } = this.#closing;
    let pauseMs: number = PAUSE_MS.first;
    for (let startedAt = clock.monotonic(); ; startedAt = clock.monotonic()) {
      const failure = await this.#ended;
      if (signal.aborted) return;
      if (clock.monotonic() - startedAt >= PAUSE_MS.settled) pauseMs = PAUSE_MS.first;
      onFailure(failure, pauseMs);
      await clock.sleep(pauseMs, signal).catch(() => undefined);
      if (signal.aborted) return;
      pauseMs = Math.min(PAUSE_MS.max, 2 * pauseMs);
      this.#ended = this.#run();
    }
  }

  /** Starts a thread, and ends one that does not come to do its work. Resolves when it is gone, to why. */
  async #run(onReady: () => void = () => undefined): Promise<unknown> {
    this.#worker = undefined;
    try {
      const { worker, ready } = this.options.start();
      this.#worker = worker;
      return await new Promise<unknown>((resolve) => {
        let failure: unknown;
        const fail = (error: unknown) => {
          failure ??= error;
          void worker.terminate();
        };
        worker.on('error', fail);
        worker.on('exit', () => resolve(failure ?? new Error('the thread has ended')));
        ready.then(onReady, fail);
      });
    } catch (error) {
      return error;
    }
  }
}
