import { randomBytes, randomFillSync } from 'node:crypto';
import { uptime } from 'node:os';
import { onAbort } from './abort.js';
import type { Clock, RandomSource } from './clock.js';

// The only file that may read ambient time and random numbers; the linter forbids them in every other file.

/** Clocks of one machine, in milliseconds. */
interface MachineClocks {
  /** The wall clock. */
  wall(): number;
  /** Stops while the machine is suspended. */
  running(): number;
  /**
   * Continues while it is suspended; counts from the same moment as `running`, in coarse steps, and is slow
   * to read.
   */
  uptime(): number;
}

/** The possible error by the wall clock's steps of a millisecond, in milliseconds. */
const ROUNDING_MS = 2;
/**
 * How long a reading of the uptime is trusted, in milliseconds: a wall clock that was set back can hide a
 * suspension.
 */
const TRUSTED_MS = 100;
/**
 * Maximum time between two readings that belong together, in milliseconds: after more, this process was
 * paused between them.
 */
const TOGETHER_MS = 5;

/**
 * A clock that continues while the machine is suspended, and never goes back. It is as exact and as cheap as
 * `running`: the uptime is read only now and then, and when the machine may have been suspended. A kernel
 * that wakes up moves the wall clock and the uptime forward against `running`, by the same time.
 */
export function suspendProof({ wall, running, uptime }: MachineClocks): () => number {
  let suspendedMs = 0;
  let readAt = Number.NEGATIVE_INFINITY;
  let wallAhead = 0;
  return () => {
    const now = running();
    const ahead = wall() - now;
    if (now - readAt < TRUSTED_MS && Math.abs(ahead - wallAhead) < ROUNDING_MS) return now + suspendedMs;
    const up = uptime();
    const after = running();
    const areTogether = after - now < TOGETHER_MS;
    if (areTogether) suspendedMs = Math.max(suspendedMs, up - after);
    readAt = areTogether ? now : Number.NEGATIVE_INFINITY;
    wallAhead = ahead;
    return Math.max(after + suspendedMs, up);
  };
}

/** The machine's, also after a test has replaced that of `process`: a jump would end every lease. */
const { hrtime } = process;

/**
 * The clock of this machine.
 *
 * `monotonic()` is CLOCK_MONOTONIC, which stops while the machine is suspended, plus the lead of the uptime,
 * which is CLOCK_BOOTTIME on Linux. Both count from the start of the machine, so every thread and process of
 * it can compare them.
 */
export const systemClock: Clock = {
  now: () => Date.now(),

  monotonic: suspendProof({
    wall: () => Date.now(),
    // Without a bigint, which takes half as long again.
    running: () => {
      const [seconds, nanoseconds] = hrtime();
      return seconds * 1_000 + nanoseconds / 1e6;
    },
    uptime: () => uptime() * 1000,
  }),

  sleep: (ms, signal) =>
    new Promise<void>((resolve, reject) => {
      if (signal?.aborted) return reject(signal.reason);
      // A longer timer fires at once.
      const timerMs = Math.min(Math.max(0, ms), 2 ** 31 - 1);
      const timer = setTimeout(() => {
        cancel();
        resolve(ms > timerMs ? systemClock.sleep(ms - timerMs, signal) : undefined);
      }, timerMs);
      const cancel = onAbort(signal, () => {
        clearTimeout(timer);
        reject(signal?.reason);
      });
    }),
};

/** Drawn in advance: one draw takes as long as a hundred UUIDs. */
const drawn = Buffer.alloc(4_096);
let used = drawn.length;

/** Where the next random bytes begin, at most as many as are drawn at once. */
function draw(bytes: number): number {
  if (used + bytes > drawn.length) {
    randomFillSync(drawn);
    used = 0;
  }
  used += bytes;
  return used - bytes;
}

/** Random numbers from the operating system's generator. */
export const systemRandom: RandomSource = {
  next: () => drawn.readUIntBE(draw(6), 6) / 2 ** 48,
  hex: (bytes) => {
    if (bytes > drawn.length) return randomBytes(bytes).toString('hex');
    const from = draw(bytes);
    return drawn.toString('hex', from, from + bytes);
  },
};
