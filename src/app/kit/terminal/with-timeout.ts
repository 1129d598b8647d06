import { orAborted, withTimeout as orTimeout, timeoutSignal } from '../../../core/base/abort.js';
import type { Clock } from '../../../core/base/clock.js';
import { explain } from '../../../core/base/errors.js';
import type { Logger } from '../log/logger.js';

interface WithTimeoutOptions {
  readonly limitMs: number;
  readonly clock: Clock;
  readonly log: Pick<Logger, 'warn'>;
  /** Names the work in the log. */
  readonly what: string;
}

/**
 * Waits for work that tidies up. A failure is a warning, and so is an end of the waiting after `limitMs`.
 * Never rejects.
 */
export async function withTimeout(
  { limitMs, clock, log, what }: WithTimeoutOptions,
  work: Promise<unknown>,
): Promise<void> {
  const done = work.then(
    () => '',
    (error) => `${what} failed: ${explain(error)}`,
  );
  const problem =
    (await orTimeout(clock, limitMs, done)) ?? `${what} took more than ${limitMs} ms: not waiting for it`;
  if (problem !== '') log.warn(problem);
}

/** How long {@link callWithTimeout} waits. */
interface CallTimeout {
  readonly clock: Clock;
  readonly timeoutMs: number;
  /** Ends the waiting earlier. */
  readonly signal?: AbortSignal | undefined;
}

/**
 * Calls `work` with a signal that aborts after a time, or with the caller's signal. Does not wait for work
 * that ignores it.
 *
 * @throws what `work` rejects with, an error that there was no answer in time, or `signal.reason`
 */
export async function callWithTimeout<T>(
  { clock, timeoutMs, signal }: CallTimeout,
  work: (signal: AbortSignal) => Promise<T>,
): Promise<T> {
  const limit = timeoutSignal(clock, timeoutMs, () => new Error(`no answer within ${timeoutMs} ms`), signal);
  try {
    return await orAborted(work(limit.signal), limit.signal);
  } finally {
    limit.release();
  }
}
