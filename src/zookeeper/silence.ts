import type { Clock } from '../base/clock.js';

interface SilenceOptions {
  readonly clock: Clock;
  /**
   * How long the server may say nothing before it is asked, and how long it then has to answer, in
   * milliseconds.
   */
  readonly intervalMs: number;
  /** When the server was heard last, on the monotonic clock. */
  readonly lastHeard: () => number;
  /** Asks the server for something cheap. */
  readonly ask: () => void;
  readonly signal: AbortSignal;
}

/**
 * Resolves to true once a connection is found to be dead: the server does not answer. Nothing else tells: a
 * peer that has vanished, a stopped server and a network that swallows packets leave the socket as it is.
 * Resolves to false when `signal` aborts first.
 */
export async function fallsSilent({
  clock,
  intervalMs,
  lastHeard,
  ask,
  signal,
}: SilenceOptions): Promise<boolean> {
  try {
    for (;;) {
      const quietMs = clock.monotonic() - lastHeard();
      if (quietMs < intervalMs) {
        await clock.sleep(intervalMs - quietMs, signal);
        continue;
      }
      const asked = clock.monotonic();
      ask();
      await clock.sleep(intervalMs, signal);
      // After a pause of this process timers come before the answers that wait in the socket: those get their
      // turn.
      if (lastHeard() < asked) await clock.sleep(0, signal);
      if (lastHeard() < asked) await clock.sleep(0, signal);
      if (lastHeard() < asked) return true;
    }
  } catch (error) {
    if (signal.aborted) return false;
    throw error;
  }
}
