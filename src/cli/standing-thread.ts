import type { Worker } from 'node:worker_threads';
import { withTimeout } from '../base/abort.js';
import type { Clock } from '../clock.js';

/** A thread that was started. */
export interface StartedThread {
  readonly worker: Worker;
  /** Resolves when it does its work; rejects when it never will. */
  readonly ready: Promise<void>;
}

export interface StandingThreadOptions {
  readonly clock: Pick<Clock, 'monotonic' | 'sleep'>;
  /** Starts the thread, at first and whenever it has ended. */
  readonly start: () => StartedThread;
  /** Asks it to end by itself. */
  readonly askToEnd: (worker: Worker) => void;
  /** How long it may take for that, in milliseconds, before it is ended. */
  readonly endWithinMs: number;
  /** It has ended, though nobody asked it to, and is started again after that many milliseconds. */
  readonly onFailure: (failure: unknown, againInMs: number) => void;
}

interface Run {
  /** Undefined where there could be none. */
  readonly worker: Worker | undefined;
  /** Rejects when it ends before it does its work. */
  readonly ready: Promise<void>;
  /** Resolves when the thread is gone, to why. */
  readonly ended: Promise<unknown>;
}

const FIRST_PAUSE_MS = 100;
const LONGEST_PAUSE_MS = 10_000;
/** Who has done its work for that long has not failed for the same reason as before, in milliseconds. */
const SETTLED_MS = 60_000;

/** A thread that is started again when it dies: of an uncaught error, or for want of memory. Nothing that becomes of it ends the process. */
export class StandingThread {
  readonly #closing = new AbortController();
  #run: Run;
  #closed: Promise<void> | undefined;

  private constructor(
    private readonly options: StandingThreadOptions,
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
  static async start(options: StandingThreadOptions): Promise<StandingThread> {
    const first = begin(options);
    await first.ready;
    return new StandingThread(options, first);
  }

  /** Ends it, for good. Never rejects; idempotent. */
  close(): Promise<void> {
    this.#closed ??= this.#close();
    return this.#closed;
  }

  async #close(): Promise<void> {
    const { clock, endWithinMs, askToEnd } = this.options;
    this.#closing.abort();
    const { worker, ended } = this.#run;
    if (worker === undefined) return;
    askToEnd(worker);
    await withTimeout(clock, endWithinMs, ended);
    // Not waited for: a thread that does not come to its end is stopped with the process.
    void worker.terminate();
  }

  async #keep(): Promise<void> {
    const { clock, onFailure } = this.options;
    const { signal } = this.#closing;
    let begunAt = clock.monotonic();
    let pauseMs = FIRST_PAUSE_MS;
    for (;;) {
      const failure = await this.#run.ended;
      if (signal.aborted) return;
      if (clock.monotonic() - begunAt >= SETTLED_MS) pauseMs = FIRST_PAUSE_MS;
      onFailure(failure, pauseMs);
      try {
        await clock.sleep(pauseMs, signal);
      } catch {
        return;
      }
      pauseMs = Math.min(2 * pauseMs, LONGEST_PAUSE_MS);
      begunAt = clock.monotonic();
      this.#run = begin(this.options);
    }
  }
}

/** One that does not come to do its work is ended: nothing else is waited for. */
function begin({ start }: StandingThreadOptions): Run {
  let started: StartedThread;
  try {
    started = start();
  } catch (error) {
    return { worker: undefined, ready: rejected(error), ended: Promise.resolve(error) };
  }
  const { worker, ready } = started;
  let failure: unknown;
  const fail = (error: unknown) => {
    failure ??= error;
  };
  worker.on('error', fail);
  const ended = new Promise<unknown>((resolve) => {
    worker.on('exit', () => resolve(failure ?? new Error('the thread has ended')));
  });
  const never = ended.then((why) => rejected(why));
  const first = Promise.race([ready, never]);
  first.catch((error: unknown) => {
    fail(error);
    void worker.terminate();
  });
  never.catch(() => undefined);
  return { worker, ready: first, ended };
}

function rejected(error: unknown): Promise<never> {
  const promise = Promise.reject<never>(error);
  promise.catch(() => undefined);
  return promise;
}
