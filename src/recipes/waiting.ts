import { anySignal, orAborted, timeoutSignal, withTimeout } from '../base/abort.js';
import { AcquireTimeoutError } from '../base/errors.js';
import { retry, STORE_BACKOFF } from '../lease/session/retry.js';
import type { CallOptions, Watch } from '../zookeeper/zookeeper.js';
import { isFault, ZooKeeperError } from '../zookeeper/zookeeper-error.js';
import { checkTimeout, type Recipe, type WaitOptions } from './recipe.js';

/** How long may take what does not wait for others, in milliseconds. */
export const CALL_MS = 5_000;
/** How long a watch may take to be set before the servers are asked whether they refuse it, in milliseconds. */
const WATCH_MS = 1_000;

/** One wait for others. */
export interface Wait {
  /** Aborts when the time is up, or with the caller's signal. */
  readonly signal: AbortSignal;
  /** Whether what is not there at once is not waited for. */
  readonly isTry: boolean;
  late(): AcquireTimeoutError;
}

/**
 * Does what may take some time, in that time.
 *
 * @param what the rest of the sentence "PATH … within 5 ms", for the time-out
 * @throws {AcquireTimeoutError} the time is up @throws {ZooKeeperError} `timeout` for no connection in time @throws `signal.reason`
 */
export async function inTime<T>(
  { zookeeper, clock, path }: Recipe,
  { timeoutMs, signal }: WaitOptions,
  what: string,
  work: (wait: Wait) => Promise<T>,
): Promise<T> {
  const limitMs = checkTimeout(timeoutMs) || CALL_MS;
  const late = () => new AcquireTimeoutError(`${zookeeper.description}: ${path} ${what} within ${timeoutMs} ms`);
  const limit = limitMs === Number.POSITIVE_INFINITY ? anySignal(signal) : timeoutSignal(clock, limitMs, late, signal);
  try {
    await zookeeper.whenConnected({ timeoutMs: limitMs, signal });
    return await work({ signal: limit.signal, isTry: timeoutMs === 0, late });
  } catch (error) {
    if (isFault(error, 'aborted')) limit.signal.throwIfAborted();
    throw error;
  } finally {
    limit.release();
  }
}

/** Repeats a call that does no harm when it is made twice, while the connection is away, and in the next session. @see whileAway */
export function inAnySession<T>({ clock, random }: Recipe, signal: AbortSignal, call: (options: CallOptions) => Promise<T>): Promise<T> {
  return retry(() => call({ signal }), {
    ...{ clock, random, signal, until: Number.POSITIVE_INFINITY, baseMs: STORE_BACKOFF.first, capMs: STORE_BACKOFF.max },
    shouldRetry: (error) => error instanceof ZooKeeperError && error.transient,
  });
}

/**
 * Waits until a standing watch tells a state that is the one.
 *
 * @param watch sets it
 * @param read reads the same znode. It fails where the watch is refused, which a watch does not tell, and where the session that it was for is over
 * @throws as `read` and {@link inTime} do
 */
export async function untilTold<S>(
  { zookeeper, clock }: Recipe,
  { signal, isTry, late }: Wait,
  watch: (tell: (state: S) => void) => Watch,
  read: () => Promise<unknown>,
  isIt: (state: S) => boolean,
): Promise<void> {
  let onTold: () => void = () => undefined;
  let onRefused: (error: unknown) => void = () => undefined;
  const told = new Promise<void>((resolve, reject) => {
    onTold = resolve;
    onRefused = reject;
  });
  const ask = () => read().then(() => undefined, onRefused);
  const forgetState = zookeeper.onState(({ status }) => {
    if (status === 'expired' || status === 'closed') void ask();
  });
  const standing = watch((state) => isIt(state) && onTold());
  const isSet = standing.first.then(() => true);
  try {
    if (!(await withTimeout(clock, WATCH_MS, Promise.race([told.then(() => true), isSet]), signal))) await ask();
    await orAborted(isTry ? Promise.race([told, isSet.then(() => Promise.reject(late()))]) : told, signal);
  } finally {
    standing.close();
    forgetState();
  }
}
