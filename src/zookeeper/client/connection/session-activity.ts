import type { Clock } from '../../../core/base/clock.js';

/** Requests within this share of the session's time-out count as simultaneous. */
const STEP_SHARE = 1 / 48;
/** More than there are steps in a time-out. */
const MOST_KEPT = 64;

/**
 * The requests that a session has sent over its current connection, and when the answers were read. They show
 * what its leader has heard. Times are those of the monotonic clock, in milliseconds.
 */
export class SessionActivity {
  #stepMs = 0;
  /** In the order of sending. */
  readonly #answered: { readonly sentAt: number; readonly answeredAt: number }[] = [];

  /**
   * A connection is confirmed. The request to connect reaches the leader itself, so this counts at once.
   * Reports to another server do not count any more.
   */
  begin(askedAt: number, timeoutMs: number): void {
    this.#stepMs = timeoutMs * STEP_SHARE;
    this.#answered.length = 0;
    this.#answered.push({ sentAt: askedAt, answeredAt: Number.NEGATIVE_INFINITY });
  }

  /** Whether a request that was sent then would be taken note of. */
  isNews(sentAt: number): boolean {
    return sentAt - (this.#answered.at(-1)?.sentAt ?? Number.NEGATIVE_INFINITY) >= this.#stepMs;
  }

  /** Takes note of an answered request. They are answered in the order of sending. */
  answered(sentAt: number, answeredAt: number): void {
    if (!this.isNews(sentAt)) return;
    this.#answered.push({ sentAt, answeredAt });
    if (this.#answered.length > MOST_KEPT) this.#answered.shift();
  }

  /** When the last of the requests was sent whose answers were there by `at`; minus infinity for none. */
  heardBy(at: number): number {
    return this.#answered.findLast(({ answeredAt }) => answeredAt <= at)?.sentAt ?? Number.NEGATIVE_INFINITY;
  }
}

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
