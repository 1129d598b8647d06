import { RunControl } from './run-control.js';
import type { SeedHistory, ShrunkViolation, ThreadSettings, ViolatedSeed } from './seed-messages.js';
import { SeedThread } from './seed-thread.js';
import { addTally, emptyTally, type Tally } from './tally.js';

/** What the threads of a pool simulate, and with which code. */
export interface PoolOptions
  extends Pick<ThreadSettings, 'size' | 'only' | 'engine' | 'traces' | 'recording' | 'from'> {
  /** The URL of the compiled `seed-worker.js`. */
  readonly code: URL;
  /** How many threads. */
  readonly jobs: number;
}

/** What has become of the seeds so far, or all in all. */
export interface RunResult {
  readonly tally: Tally;
  /** The lowest seed that failed. */
  readonly violated: ViolatedSeed | undefined;
  /** In the order of their seeds; empty unless they are kept. */
  readonly histories: readonly SeedHistory[];
  /** From the first seed on, in milliseconds: passed, and spent computing by all threads together. */
  readonly tookMs: number;
  readonly cpuMs: number;
}

/** Seeds that one thread gets at a time, at the most: few, so that all threads end at about the same time. */
const CHUNK = 8;

/** Threads that simulate seeds. */
export class SeedPool {
  private constructor(
    private readonly options: PoolOptions,
    private readonly threads: readonly SeedThread[],
    private readonly control: RunControl,
  ) {}

  /** @throws {SeedThreadError} when the threads' code cannot be loaded */
  static async start(options: PoolOptions): Promise<SeedPool> {
    const control = new RunControl();
    const { code, jobs, ...settings } = options;
    const started = Array.from({ length: jobs }, () =>
      SeedThread.start(code, { ...settings, control: control.memory }),
    );
    try {
      return new SeedPool(options, await Promise.all(started), control);
    } catch (error) {
      for (const thread of await Promise.allSettled(started))
        if (thread.status === 'fulfilled') await thread.value.end();
      throw error;
    }
  }

  /**
   * Simulates seeds from the first one on, until all of them are done, one has failed, time is up, or
   * {@link stop} is called.
   *
   * Seeds are given out in their order, and those before one that failed are still run. So it is the same
   * seed that is reported with any number of threads, the lowest that fails, unless time or somebody ends the
   * run earlier; some that follow it may be counted, too.
   *
   * @param seeds how many at the most
   * @param maxMs how long to go on, in milliseconds of real time
   * @param onProgress gets what is known by then; called after every few seeds
   * @throws {SeedThreadError} when a thread dies
   */
  async run(
    seeds: number,
    maxMs: number | undefined,
    onProgress: (result: RunResult) => void,
  ): Promise<RunResult> {
    const { threads, control } = this;
    const { from } = this.options;
    const begun = performance.now();
    const cpuBegun = process.cpuUsage();
    const tally = emptyTally(this.options.engine);
    const histories: SeedHistory[] = [];
    let violated: ViolatedSeed | undefined;
    const result = (): RunResult => {
      const { user, system } = process.cpuUsage(cpuBegun);
      return {
        tally,
        violated,
        histories,
        tookMs: performance.now() - begun,
        cpuMs: (user + system) / 1_000,
      };
    };
    const size = Math.max(1, Math.min(CHUNK, Math.ceil(seeds / (4 * threads.length))));
    let given = 0;
    const work = async (thread: SeedThread) => {
      while (given < seeds && control.wants(given)) {
        const first = given;
        const count = Math.min(size, seeds - first);
        given += count;
        const chunk = await thread.run(from + first, count);
        addTally(tally, chunk.tally);
        histories.push(...chunk.histories);
        if (chunk.violated !== undefined) {
          control.limitTo(chunk.violated.seed - from);
          if (violated === undefined || chunk.violated.seed < violated.seed) violated = chunk.violated;
        }
        onProgress(result());
      }
    };
    const timer = maxMs === undefined ? undefined : setTimeout(() => control.limitTo(0), maxMs);
    try {
      await Promise.all(threads.map(work));
    } finally {
      clearTimeout(timer);
    }
    histories.sort((a, b) => a.seed - b.seed);
    return result();
  }

  /**
   * Looks for the smallest part of a seed that fails as the whole does.
   *
   * @param maxRuns simulations at the most
   * @throws {SeedThreadError} when the thread dies
   */
  async shrink(seed: number, maxRuns: number): Promise<ShrunkViolation> {
    const [thread] = this.threads;
    if (thread === undefined) throw new Error('a pool without threads');
    return thread.shrink(seed, maxRuns);
  }

  /** Ends what is under way, after the simulation that each thread is at. */
  stop(): void {
    this.control.stop();
  }

  /** Ends the threads. */
  async end(): Promise<void> {
    await Promise.all(this.threads.map((thread) => thread.end()));
  }
}
