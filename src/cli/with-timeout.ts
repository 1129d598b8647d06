import { withTimeout as limited } from '../base/abort.js';
import type { Clock } from '../clock.js';
import { explain } from '../errors.js';
import type { Logger } from './logger.js';

export interface WithTimeoutOptions {
  readonly limitMs: number;
  readonly clock: Clock;
  readonly log: Pick<Logger, 'warn'>;
  /** Names the work in the log. */
  readonly what: string;
}

/** Waits for something that tidies up, but not for ever, and without failing for it: both are warned of. Never rejects. */
export async function withTimeout({ limitMs, clock, log, what }: WithTimeoutOptions, work: Promise<unknown>): Promise<void> {
  try {
    const inTime = await limited(
      clock,
      limitMs,
      work.then(() => true),
    );
    if (!inTime) log.warn(`${what} took more than ${limitMs} ms: not waiting for it`);
  } catch (error) {
    log.warn(`${what} failed: ${explain(error)}`);
  }
}
