import { orAborted, timeoutSignal } from '../base/abort.js';
import type { Clock } from '../base/clock.js';
import { type LeaseStore, type StoreCallOptions, StoreError } from './lease-store.js';

/** How long one call of a store may take, and what to say when it takes longer. */
export interface Bounds {
  readonly clock: Clock;
  /** Milliseconds. */
  readonly timeoutMs: number;
  /** The whole time of which `timeoutMs` is left, for messages, in milliseconds. @default `timeoutMs` */
  readonly wholeMs?: number | undefined;
  /** See {@link LeaseStore.noAnswer}. */
  readonly noAnswer?: LeaseStore['noAnswer'];
  readonly signal?: AbortSignal | undefined;
  /** What is being done where, as the beginning of an error's message. */
  readonly what: string;
}

/**
 * Makes a call of a store, and gives it up for lack of time or by its signal, at once, even where the driver
 * underneath is stuck.
 *
 * @throws {StoreError} that of the store; one of unknown outcome for a call that was given up or failed in
 * any other way; one of outcome not-applied for a call that was not begun since `signal` had aborted
 */
export async function bounded<T>(
  {
    clock,
    timeoutMs,
    wholeMs = timeoutMs,
    noAnswer = (within) => `no answer ${within}`,
    signal,
    what,
  }: Bounds,
  run: (options: Required<StoreCallOptions>) => Promise<T>,
): Promise<T> {
  const failed = (detail: string, outcome: StoreError['outcome'], cause?: unknown) =>
    new StoreError(`${what}: ${detail}`, { fault: 'unreachable', outcome, cause });
  if (signal?.aborted) throw failed('not begun', 'not-applied', signal.reason);
  const ms = Math.round(timeoutMs);
  const within =
    wholeMs > timeoutMs ? `within the last ${ms} of ${Math.round(wholeMs)} ms` : `within ${ms} ms`;
  const call = timeoutSignal(clock, timeoutMs, () => failed(noAnswer(within), 'unknown'), signal);
  try {
    return await orAborted(run({ signal: call.signal }), call.signal);
  } catch (error) {
    if (signal?.aborted && error === signal.reason) throw failed('given up', 'unknown', error);
    throw error instanceof StoreError ? error : failed('failed', 'unknown', error);
  } finally {
    call.release();
  }
}
