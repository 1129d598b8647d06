import type { Worker } from 'node:worker_threads';
import { withTimeout } from '../../base/abort.js';
import type { Clock } from '../../base/clock.js';

/** A thread that was started. */
export interface StartedThread {
  readonly worker: Worker;
  /** Resolves when it does its work; rejects when it never will. */
  readonly ready: Promise<void>;
}

export interface RestartingWorkerOptions {
  readonly clock: Pick<Clock, 'monotonic' | 'sleep'>;
  /** Starts the thread, at first and whenever it has ended. */
  readonly start: () => StartedThread;
  /** Asks it to end by itself. */
  readonly askToEnd: (worker: Worker) => void;
  /** How long it may take for that, in milliseconds, before it is ended. */
  readonly endTimeoutMs: number;
  /** It has ended without being asked to, and is started again after that many milliseconds. */
  readonly onFailure: (failure: unknown, againInMs: number) => void;
}

interface Run {
  /** Undefined where the thread could not be started. */
  readonly worker: Worker | undefined;
  /** Rejects when it ends before it does its work. */
  readonly ready: Promise<void>;
  /** Resolves when the thread is gone, to why. */
  readonly ended: Promise<unknown>;
}

/** How long it takes until a thread is started again: doubled with each failure, in milliseconds. */
const PAUSE_MS = { min: 100, max: 10_000 };
/** A thread that has done its work for that long has not failed for the same reason as before, in milliseconds. */
const SETTLED_MS = 60_000;

/** A thread that is started again when it dies: of an uncaught error, or for want of memory. Its failures never end the process. */
export class RestartingWorker {
  readonly #closing = new AbortController();
  #run: Run;
  #closed: Promise<void> | undefined;

  private constructor(
    private readonly options: RestartingWorkerOptions,
    first: Run,
  ) {
    this.#run = first;
    void this.#keep();
  }

  /**
   * Resolves when it does its work for the first time.
   *
   * @throws whatever kept it from that
   */
  static async start(options: RestartingWorkerOptions): Promise<RestartingWorker> {
    const first = begin(options.start);
    await first.ready;
    return new RestartingWorker(options, first);
  }

  /** Ends it, for good. Never rejects; idempotent. */
  close(): Promise<void> {
    this.#closed ??= this.#close();
    return this.#closed;
  }

  async #close(): Promise<void> {
    const { clock, endTimeoutMs, askToEnd } = this.options;
    this.#closing.abort();
    const { worker, ended } = this.#run;
    if (worker === undefined) return;
    askToEnd(worker);
    await withTimeout(clock, endTimeoutMs, ended);
    // Not waited for: a thread that does not come to its end is stopped with the process.
    void worker.terminate();
  }

  async #keep(): Promise<void> {
    const { clock, start, onFailure } = this.options;
    const { signal } = this.#closing;
    let begunAt = clock.monotonic();
    let pauseMs = PAUSE_MS.min;
    for (;;) {
      const failure = await this.#run.ended;
      if (signal.aborted) return;
      if (clock.monotonic() - begunAt >= SETTLED_MS) pauseMs = PAUSE_MS.min;
      onFailure(failure, pauseMs);
      await clock.sleep(pauseMs, signal).catch(() => undefined);
      if (signal.aborted) return;
      pauseMs = Math.min(2 * pauseMs, PAUSE_MS.max);
      begunAt = clock.monotonic();
      this.#run = begin(start);
    }
  }
}

/** A thread that does not come to do its work is ended. */
function begin(start: () => StartedThread): Run {
  let started: StartedThread;
  try {
    started = start();
  } catch (error) {
    return { worker: undefined, ready: handled(Promise.reject(error)), ended: Promise.resolve(error) };
  }
  const { worker } = started;
  let failure: unknown;
  worker.on('error', (error) => {
    failure ??= error;
  });
  const ended = new Promise<unknown>((resolve) => {
    worker.on('exit', () => resolve(failure ?? new Error('the thread has ended')));
  });
  const endedFirst = ended.then((why) => Promise.reject(why));
  const ready = Promise.race([started.ready, handled(endedFirst)]);
  ready.catch((error: unknown) => {
    failure ??= error;
    void worker.terminate();
  });
  return { worker, ready, ended };
}

/** The promise, whose rejection is no uncaught one where nothing waits for it. */
function handled<T>(promise: Promise<T>): Promise<T> {
  promise.catch(() => undefined);
  return promise;
}
