import { Worker } from 'node:worker_threads';
import { Pulse } from './run-control.js';
import type { Answer, ChunkResult, Order, ShrunkViolation, ThreadSettings } from './seed-messages.js';

/**
 * How long one simulation may take, in milliseconds of real time, before it counts as one that never ends.
 */
const STUCK_MS = 60_000;
/** How often that is looked at, in milliseconds. */
const LOOK_MS = 5_000;
/** Room for what one chunk of seeds allocates, in MiB, so that little of it outlives a collection. */
const YOUNG_GENERATION_MB = 192;

/**
 * A thread that simulates has died, or had to be ended: a fault in the simulator, or an uncaught exception
 * out of the engine.
 */
export class SeedThreadError extends Error {
  constructor(
    /** What it was to do: `seeds 5 to 12`. */
    readonly order: string,
    /** The seed that it was at, if it had begun. */
    readonly seed: number | undefined,
    what: string,
    cause?: unknown,
  ) {
    super(`the thread of ${order} ${what}${seed === undefined ? '' : `, at seed ${seed}`}`, { cause });
  }
}

interface Waiting {
  readonly order: string;
  readonly resolve: (answer: Answer) => void;
  readonly reject: (error: SeedThreadError) => void;
}

/** One worker thread that simulates seeds, one order at a time. */
export class SeedThread {
  readonly #worker: Worker;
  readonly #pulse: Pulse;
  #waiting: Waiting | undefined;

  private constructor(code: URL, settings: Omit<ThreadSettings, 'pulse'>) {
    this.#pulse = new Pulse();
    this.#worker = new Worker(code, {
      workerData: { ...settings, pulse: this.#pulse.memory } satisfies ThreadSettings,
      resourceLimits: { maxYoungGenerationSizeMb: YOUNG_GENERATION_MB },
    });
    this.#worker.on('message', (answer: Answer) => this.#settle(({ resolve }) => resolve(answer)));
    this.#worker.on('error', (error) => this.#fail('died', error));
    this.#worker.on('exit', (code) => this.#fail(`ended with exit code ${code}`));
  }

  /**
   * Resolves when the thread has loaded its code and is ready for orders.
   *
   * @param code the URL of the compiled `seed-worker.js`, that of a planted tree for one
   * @throws {SeedThreadError}
   */
  static async start(code: URL, settings: Omit<ThreadSettings, 'pulse'>): Promise<SeedThread> {
    const thread = new SeedThread(code, settings);
    await thread.#answered(`the start of ${code.pathname}`);
    return thread;
  }

  /**
   * Simulates seeds.
   *
   * @throws {SeedThreadError}
   */
  async run(first: number, count: number): Promise<ChunkResult> {
    return (await this.#ask(
      { kind: 'run', first, count },
      `seeds ${first} to ${first + count - 1}`,
    )) as ChunkResult;
  }

  /**
   * Looks for the smallest part of a seed that fails as the whole does, in `maxRuns` simulations at the most.
   *
   * @throws {SeedThreadError}
   */
  async shrink(seed: number, maxRuns: number): Promise<ShrunkViolation> {
    return (await this.#ask(
      { kind: 'shrink', seed, maxRuns },
      `the shrinking of seed ${seed}`,
    )) as ShrunkViolation;
  }

  /** Ends the thread, whatever it is at. */
  async end(): Promise<void> {
    this.#worker.removeAllListeners();
    this.#fail('was ended');
    await this.#worker.terminate();
  }

  async #ask(order: Order, called: string): Promise<Answer> {
    this.#worker.postMessage(order);
    let runs = this.#pulse.runs;
    let since = performance.now();
    const watch = setInterval(() => {
      if (this.#pulse.runs !== runs) {
        runs = this.#pulse.runs;
        since = performance.now();
      } else if (performance.now() - since > STUCK_MS) {
        this.#fail(`has simulated one seed for ${STUCK_MS / 1_000} s`);
        void this.#worker.terminate();
      }
    }, LOOK_MS);
    try {
      return await this.#answered(called);
    } finally {
      clearInterval(watch);
    }
  }

  #answered(order: string): Promise<Answer> {
    return new Promise((resolve, reject) => {
      this.#waiting = { order, resolve, reject };
    });
  }

  #settle(settle: (waiting: Waiting) => void): void {
    const waiting = this.#waiting;
    this.#waiting = undefined;
    if (waiting !== undefined) settle(waiting);
  }

  #fail(what: string, cause?: unknown): void {
    const seed = this.#pulse.runs === 0 ? undefined : this.#pulse.seed;
    this.#settle(({ order, reject }) => reject(new SeedThreadError(order, seed, what, cause)));
  }
}
