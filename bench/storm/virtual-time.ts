import type { Clock } from '../../src/core/base/clock.js';
import { type Actor, type Planned, Scheduler } from '../../test/simulation/world/scheduler.js';

/** Everything happens to it: it is never dead, and never stopped. */
const EVERYBODY: Actor = { alive: true, stopped: false, defer: () => undefined };

/**
 * Where the wall clock stands when a storm begins, in milliseconds since the Unix epoch; not on a whole
 * second.
 */
const BEGIN = Date.UTC(2026, 0, 1) + 437;

/**
 * One clock for the store and all that use it. Time passes in `run` alone, from one sleeper's end to the next
 * one's.
 */
export class VirtualTime implements Clock {
  readonly #scheduler = new Scheduler();

  now(): number {
    return BEGIN + this.#scheduler.now;
  }

  monotonic(): number {
    return this.#scheduler.now;
  }

  sleep(ms: number, signal?: AbortSignal): Promise<void> {
    if (signal?.aborted) return Promise.reject(signal.reason);
    return new Promise((resolve, reject) => {
      let planned: Planned | undefined;
      const onAbort = () => {
        if (planned !== undefined) planned.cancelled = true;
        signal?.removeEventListener('abort', onAbort);
        reject(signal?.reason);
      };
      planned = this.#scheduler.at(
        this.#scheduler.now + ms,
        EVERYBODY,
        () => {
          signal?.removeEventListener('abort', onAbort);
          resolve();
        },
        true,
      );
      signal?.addEventListener('abort', onAbort);
    });
  }

  /**
   * Lets time pass until `work` has settled.
   *
   * @returns what it resolved to
   * @throws what it was rejected with, or an Error when it is still under way after `mostMs`
   */
  async run<T>(work: Promise<T>, mostMs: number): Promise<T> {
    let settled = false;
    const settle = () => {
      settled = true;
    };
    work.then(settle, settle);
    await this.#scheduler.run(this.#scheduler.now + mostMs, () => !settled);
    if (!settled) throw new Error(`not over after ${mostMs} ms of virtual time`);
    return work;
  }
}
