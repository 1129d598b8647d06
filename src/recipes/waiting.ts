import { anySignal, orAborted, timeoutSignal, withTimeout } from '../base/abort.js';
import { AcquireTimeoutError } from '../base/errors.js';
import { retry, STORE_BACKOFF } from '../lease/session/retry.js';
import type { BoundSession } from '../zookeeper/bound-session.js';
import type { CallOptions, Watch, Znode } from '../zookeeper/zookeeper.js';
import { isFault, ZooKeeperError } from '../zookeeper/zookeeper-error.js';
import { checkTimeout, type Recipe, type WaitOptions, whileAway } from './recipe.js';

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
export function inAnySession<T>(
  { clock, random }: Recipe,
  signal: AbortSignal | undefined,
  call: (options: CallOptions) => Promise<T>,
): Promise<T> {
  return retry(() => call({ signal }), {
    ...{ clock, random, signal, until: Number.POSITIVE_INFINITY, baseMs: STORE_BACKOFF.first, capMs: STORE_BACKOFF.max },
    shouldRetry: (error) => error instanceof ZooKeeperError && error.transient,
  });
}

/** What became of a write. */
export interface Written<T> {
  /** What the last attempt resolved to, undefined where it failed. */
  readonly value?: T;
  readonly error?: unknown;
  /** Whether an attempt before that, or one that failed, may have been carried out. */
  readonly mayBeDone: boolean;
}

/** Makes a write whose attempts together change something once at the most, by their conditions. Never rejects. */
export async function writeOnce<T>(
  recipe: Recipe,
  signal: AbortSignal,
  write: (options: CallOptions) => Promise<T>,
  repeat: typeof inAnySession = inAnySession,
): Promise<Written<T>> {
  let mayBeDone = false;
  let isDone = false;
  try {
    const value = await repeat(recipe, signal, async (call) => {
      try {
        const done = await write(call);
        isDone = true;
        return done;
      } catch (error) {
        mayBeDone ||= error instanceof ZooKeeperError && error.outcome === 'unknown';
        throw error;
      }
    });
    return { value, mayBeDone };
  } catch (error) {
    return { error, mayBeDone: mayBeDone || isDone };
  }
}

/**
 * Waits until a znode, undefined for none, is as expected.
 *
 * @param session in which to wait @throws {ZooKeeperError} access denied, client closed, or `session-expired` @throws as {@link inTime}
 */
export function untilData(recipe: Recipe, wait: Wait, path: string, isIt: (now: Znode | undefined) => boolean, session?: BoundSession) {
  const watch = (tell: (now: Znode | undefined) => void) => recipe.zookeeper.watchData(path, tell);
  return untilTold(recipe, wait, watch, reading(recipe, wait, path, 'read', session), isIt);
}

/** The same for the names of its children, none where it is absent. */
export function untilChildren(
  recipe: Recipe,
  wait: Wait,
  path: string,
  isIt: (names: readonly string[]) => boolean,
  session?: BoundSession,
) {
  const watch = (tell: (names: readonly string[] | undefined) => void) => recipe.zookeeper.watchChildren(path, tell);
  return untilTold(recipe, wait, watch, reading(recipe, wait, path, 'children', session), (names = []) => isIt(names));
}

/** A read tells that a watch is refused, and that a session is over: a watch does not. */
function reading(recipe: Recipe, { signal }: Wait, path: string, what: 'read' | 'children', session: BoundSession | undefined) {
  return (): Promise<unknown> => {
    if (session) return whileAway<unknown>(recipe, signal, (call) => session[what](path, call));
    return inAnySession<unknown>(recipe, signal, (call) => recipe.zookeeper[what](path, call));
  };
}

async function untilTold<S>(
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
