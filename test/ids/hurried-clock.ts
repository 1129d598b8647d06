import type { Clock } from '../../src/core/base/clock.js';
import { systemClock } from '../../src/core/base/system.js';
import type { BootClock } from '../../src/core/store/file/object-ages.js';

/** A time that all threads of a run share, and that passes faster than the machine's. */
export interface HurriedTime {
  /** How many times faster. */
  readonly speed: number;
  /**
   * The machine's monotonic clock at the beginning of the run, and what time it was then, in milliseconds
   * since the Unix epoch.
   */
  readonly begunAt: number;
  readonly epochMs: number;
}

/** The time of a run. Wall clocks that are wrong are made of it by {@link HurriedClock.wallOffsetMs}. */
export class HurriedClock implements Clock {
  /** How far this clock's wall clock is from the true time, in milliseconds. */
  wallOffsetMs = 0;

  constructor(private readonly time: HurriedTime) {}

  now(): number {
    return this.time.epochMs + this.monotonic() + this.wallOffsetMs;
  }

  monotonic(): number {
    return (systemClock.monotonic() - this.time.begunAt) * this.time.speed;
  }

  sleep(ms: number, signal?: AbortSignal): Promise<void> {
    return systemClock.sleep(ms / this.time.speed, signal);
  }

  /** What ages in a folder are measured on: the same for all threads of the run. */
  bootClock(): BootClock {
    return { id: `proof ${this.time.begunAt}`, resolutionMs: 1, now: () => Math.floor(this.monotonic()) };
  }
}
