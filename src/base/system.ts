import { randomBytes } from 'node:crypto';
import { uptime } from 'node:os';
import { onAbort } from './abort.js';
import type { Clock, RandomSource } from './clock.js';
import { suspendProof } from './suspend-proof.js';

// The only file that may read ambient time and chance; the linter keeps them out of every other one.

/**
 * The clock of this machine.
 *
 * `monotonic()` is CLOCK_MONOTONIC, which stands still while the machine is suspended, and what the uptime,
 * on Linux CLOCK_BOOTTIME, is ahead of it. Both count from the start of the machine, so every thread and
 * process of it can compare them.
 */
export const systemClock: Clock = {
  now: () => Date.now(),

  monotonic: suspendProof({
    wall: () => Date.now(),
    running: () => Number(process.hrtime.bigint()) / 1e6,
    uptime: () => uptime() * 1000,
  }),

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
