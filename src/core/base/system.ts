import { randomBytes } from 'node:crypto';
import { uptime } from 'node:os';
import { onAbort } from './abort.js';
import type { Clock, RandomSource } from './clock.js';
import { suspendProof } from './host/suspend-proof.js';

// The only file that may read ambient time and random numbers; the linter forbids them in every other file.

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
      const [seconds, nanoseconds] = process.hrtime();
      return seconds * 1_000 + nanoseconds / 1e6;
    },
    uptime: () => uptime() * 1000,
  }),

  sleep: (ms, signal) =>
    new Promise<void>((resolve, reject) => {
      if (signal?.aborted) return reject(signal.reason);
      // A timer longer than 2^31 - 1 ms fires at once. Such a wait is cut here, and its caller checks the
      // time again.
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

/** Random numbers from the operating system's generator. */
export const systemRandom: RandomSource = {
  next: () => randomBytes(6).readUIntBE(0, 6) / 2 ** 48,
  hex: (bytes) => randomBytes(bytes).toString('hex'),
};
