import type { Clock, RandomSource } from '../../src/core/base/clock.js';

/** A clock that stands still until a test moves it. Wall clock and monotonic clock can be moved apart. */
export class VirtualClock implements Clock {
  /** Wall clock less monotonic clock, in milliseconds. */
  wallOffset = 1_700_000_000_000;
  #now = 0;
  readonly #timers = new Set<Timer>();
  #order = 0;

  now(): number {
    return this.#now + this.wallOffset;
  }

  monotonic(): number {
    return this.#now;
  }

  /** Sleeps that have not ended. */
  get sleepers(): number {
    return this.#timers.size;
  }

  sleep(ms: number, signal?: AbortSignal): Promise<void> {
    return new Promise((resolve, reject) => {
      if (signal?.aborted) return reject(signal.reason);
      const onAbort = () => {
        this.#timers.delete(timer);
        reject(signal?.reason);
      };
      const timer = {
        at: this.#now + Math.max(0, ms),
        order: this.#order++,
        fire: () => {
          signal?.removeEventListener('abort', onAbort);
          resolve();
        },
      };
      this.#timers.add(timer);
      signal?.addEventListener('abort', onAbort, { once: true });
    });
  }

  /**
   * Moves on by `ms`, waking the sleepers at their times, and letting those of one time act before the next
   * ones wake.
   */
  async advance(ms: number): Promise<void> {
    const target = this.#now + ms;
    await settled();
    for (let at = this.#earliest(); at <= target; at = this.#earliest()) {
      this.#now = Math.max(this.#now, at);
      const due = [...this.#timers]
        .filter((timer) => timer.at <= this.#now)
        .sort((a, b) => a.at - b.at || a.order - b.order);
      for (const timer of due) this.#timers.delete(timer);
      for (const timer of due) timer.fire();
      await settled();
    }
    this.#now = Math.max(this.#now, target);
    await settled();
  }

  /**
   * Moves on by `ms` without waking anybody, as for a process that is paused; the sleepers wake at the next
   * `advance`.
   */
  freeze(ms: number): void {
    this.#now += ms;
  }

  #earliest(): number {
    let first = Number.POSITIVE_INFINITY;
    for (const { at } of this.#timers) first = Math.min(first, at);
    return first;
  }
}

interface Timer {
  readonly at: number;
  readonly order: number;
  readonly fire: () => void;
}

/**
 * Resolves when nothing is left to do but to wait for time: chains of promises of any sensible length have
 * run.
 */
export async function settled(): Promise<void> {
  for (let i = 0; i < 3; i += 1) await new Promise<void>((resolve) => setImmediate(resolve));
}

/**
 * Moves the clock until the work is done. Where code is loaded or a connection is refused, which takes real
 * time, none passes before the work waits for it.
 */
export async function inVirtualTime<T>(clock: VirtualClock, work: Promise<T>): Promise<T> {
  let isDone = false;
  const end = () => {
    isDone = true;
  };
  work.then(end, end);
  while (!isDone) await (clock.sleepers > 0 ? clock.advance(50) : settled());
  return work;
}

/** The same numbers for the same seed (mulberry32). */
export function seededRandom(seed: number): RandomSource {
  let state = seed >>> 0;
  const next = () => {
    state = (state + 0x6d2b79f5) >>> 0;
    let t = state;
    t = Math.imul(t ^ (t >>> 15), t | 1);
    t ^= t + Math.imul(t ^ (t >>> 7), t | 61);
    return ((t ^ (t >>> 14)) >>> 0) / 2 ** 32;
  };
  const hex = (bytes: number) =>
    Array.from({ length: bytes }, () =>
      Math.floor(next() * 256)
        .toString(16)
        .padStart(2, '0'),
    ).join('');
  return { next, hex };
}
