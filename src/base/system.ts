import { randomBytes } from 'node:crypto';
import { uptime } from 'node:os';
import { onAbort } from './abort.js';
import type { Clock, RandomSource } from './clock.js';

// The only file that may read ambient time and chance; the linter keeps them out of every other one.

/**
 * The clock of this machine.
 *
 * `monotonic()` is the larger of CLOCK_MONOTONIC, which stands still while the machine is suspended, and the uptime,
 * which on Linux is CLOCK_BOOTTIME and does not. Both count from the start of the machine, so every thread and process of it can compare them.
 */
export const systemClock: Clock = {
  now: () => Date.now(),

  monotonic: () => Math.max(Number(process.hrtime.bigint()) / 1e6, uptime() * 1000),

  sleep: (ms, signal) =>
    new Promise<void>((resolve, reject) => {
      if (signal?.aborted) return reject(signal.reason);
      // A timer longer than 2^31 - 1 ms fires at once; such a wait is cut here and its caller looks again.
      const timer = setTimeout(
        () => {
          cancel();
          resolve();
        },
        Math.min(Math.max(0, ms), 2 ** 31 - 1),
      );
      const cancel = onAbort(signal, () => {
        clearTimeout(timer);
        reject(signal?.reason);
      });
    }),
};

/** Chance from the operating system's generator. */
export const systemRandom: RandomSource = {
  next: () => randomBytes(6).readUIntBE(0, 6) / 2 ** 48,
  hex: (bytes) => randomBytes(bytes).toString('hex'),
};
