import { withTimeout as orTimeout } from '../../../core/base/abort.js';
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
