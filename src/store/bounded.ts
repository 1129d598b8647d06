import { onAbort } from '../base/abort.js';
import type { Clock } from '../base/clock.js';
import { type CallOptions, StoreError } from './lease-store.js';

/** How long one call of a store may take, and what to say when it takes longer. */
export interface Bounds {
  readonly clock: Clock;
  /** Milliseconds. */
  readonly timeoutMs: number;
  readonly signal?: AbortSignal | undefined;
  /** What is being done where, as the beginning of an error's message. */
  readonly what: string;
}

/**
 * Why what was under way for a call is given up when the call has ended. One for all: nobody gets to see it, and an error of its own
 * would cost more than the rest of the call.
 */
const SETTLED = new Error('the call has ended');

/**
 * Makes a call of a store, and gives it up for lack of time or by its signal, at once, even where the driver underneath is stuck.
 *
 * @throws {StoreError} that of the store; one of unknown outcome for a call that was given up or failed in any other way; one of
 * outcome not-applied for a call that was not begun since `signal` had aborted
 */
export function bounded<T>({ clock, timeoutMs, signal, what }: Bounds, run: (options: CallOptions) => Promise<T>): Promise<T> {
  if (signal?.aborted) {
    return Promise.reject(new StoreError(`${what}: not begun`, { fault: 'unreachable', outcome: 'not-applied', cause: signal.reason }));
  }
  return new Promise((resolve, reject) => {
    const request = new AbortController();
    const end = () => {
      request.abort(SETTLED);
      cancel();
    };
    const giveUp = (detail: string, cause?: unknown) => {
      end();
      reject(new StoreError(`${what}: ${detail}`, { fault: 'unreachable', outcome: 'unknown', cause }));
    };
    const cancel = onAbort(signal, () => giveUp('given up', signal?.reason));
    clock.sleep(timeoutMs, request.signal).then(
      () => giveUp(`no answer within ${Math.round(timeoutMs)} ms`),
      // The call has ended in another way.
      () => undefined,
    );
    let called: Promise<T>;
    try {
      called = run({ signal: request.signal });
    } catch (error) {
      // A driver that throws instead of rejecting has failed, too.
      called = Promise.reject(error);
    }
    called.then(
      (reply) => {
        end();
        resolve(reply);
      },
      (error: unknown) => {
        if (!(error instanceof StoreError)) return giveUp('failed', error);
        end();
        reject(error);
      },
    );
  });
}
