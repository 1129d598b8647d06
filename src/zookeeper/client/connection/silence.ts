import type { Clock } from '../../../core/base/clock.js';

interface SilenceOptions {
  readonly clock: Clock;
  /**
   * How long the server may be silent before it is probed, and how long it then has to answer, in
   * milliseconds.
   */
  readonly intervalMs: number;
  /** When the server was heard last, on the monotonic clock. */
  readonly lastHeard: () => number;
  /** Sends the server a cheap request. */
  readonly ask: () => void;
  readonly signal: AbortSignal;
}

/**
 * Resolves to true once a connection is found to be dead: the server does not answer. Nothing else shows
 * that: a vanished peer, a stopped server and a network that drops packets leave the socket unchanged.
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
      // After a pause of this process, timers run before the answers that wait in the socket. These turns let
      // the answers in.
      if (lastHeard() < asked) await clock.sleep(0, signal);
      if (lastHeard() < asked) await clock.sleep(0, signal);
      if (lastHeard() < asked) return true;
    }
  } catch (error) {
    if (signal.aborted) return false;
    throw error;
  }
}
