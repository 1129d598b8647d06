import type { Clock } from '../../../src/core/base/clock.js';
import type { Machine } from './machine.js';
import type { Actor, Scheduler } from './scheduler.js';

/**
 * One run of one process on a machine: it can be stopped, continued and killed, and has the machine's clocks.
 */
export class SimulatedProcess implements Actor {
  alive = true;
  /** When it was last continued, in true time. */
  resumedAt = Number.NEGATIVE_INFINITY;
  readonly clock: Clock;
  #stops = 0;
  #deferred: (() => void)[] = [];
  #later: (() => void)[] = [];

  constructor(
    private readonly scheduler: Scheduler,
    readonly machine: Machine,
    /** How late its timers may be, in milliseconds; 0 for a machine that has nothing else to do. */
    private readonly latenessMs: () => number,
    /**
     * What it sees first when it goes on: all that was sent to it, or that its timers have run out.
     * @default what came first
     */
    private readonly seesFirst?: 'replies' | 'timers' | undefined,
  ) {
    this.clock = {
      now: () => machine.wallAt(scheduler.now),
      monotonic: () => machine.monotonicAt(scheduler.now),
      sleep: (ms, signal) => this.#sleep(ms, signal),
    };
  }

  get stopped(): boolean {
    return this.#stops > 0;
  }

  defer(act: () => void, isTimer: boolean): void {
    if (this.seesFirst === (isTimer ? 'replies' : 'timers')) this.#later.push(act);
    else this.#deferred.push(act);
  }

  /** SIGSTOP; as many times continued as stopped. */
  stop(): void {
    this.#stops += 1;
  }

  /** SIGCONT: what came in the meantime happens now, in its order. */
  resume(): void {
    this.#stops -= 1;
    if (this.#stops > 0) return;
    this.resumedAt = this.scheduler.now;
    const deferred = [...this.#deferred, ...this.#later];
    this.#deferred = [];
    this.#later = [];
    for (const act of deferred) act();
  }

  /** SIGKILL. */
  kill(): void {
    this.alive = false;
    this.#deferred = [];
    this.#later = [];
  }

  #sleep(ms: number, signal: AbortSignal | undefined): Promise<void> {
    return new Promise((resolve, reject) => {
      if (signal?.aborted) return reject(signal.reason);
      const wakeAt = this.scheduler.now + this.machine.trueMs(Math.max(0, ms)) + this.latenessMs();
      if (signal === undefined) {
        this.scheduler.at(wakeAt, this, resolve, true);
        return;
      }
      const onAbort = () => {
        planned.cancelled = true;
        reject(signal.reason);
      };
      const onTime = () => {
        signal.removeEventListener('abort', onAbort);
        resolve();
      };
      const planned = this.scheduler.at(wakeAt, this, onTime, true);
      signal.addEventListener('abort', onAbort, { once: true });
    });
  }
}
