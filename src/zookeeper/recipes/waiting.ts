import { orAborted, timeoutSignal, withTimeout } from '../../core/base/abort.js';
import { checked, MS, maybe, OBJECT } from '../../core/base/arguments.js';
import { WaitTimeoutError } from '../../core/base/errors.js';
import type { Retry } from '../../core/base/retry.js';
import type { BoundSession } from '../client/bound-session.js';
import { whileConnectionIsAway } from '../client/retry.js';
import {
  CALL_TIMEOUT_MS,
  type CallOptions,
  isFault,
  isUnknown,
  type Watch,
  type Znode,
  ZooKeeperError,
} from '../client/zookeeper.js';
import type { Recipe, WaitOptions } from './recipe.js';

/**
 * How long a watch may take to be set before the servers are asked whether they refuse it, in milliseconds.
 */
const WATCH_MS = 1_000;

/** One wait for others. */
export interface Wait {
  readonly recipe: Recipe;
  /** Aborts when the time is up, or with the caller's signal; undefined where there is neither. */
  readonly signal: AbortSignal | undefined;
  /** Whether what is not there at once is not waited for. */
  readonly isTry: boolean;
  late(): WaitTimeoutError;
  /** Retries a call that does no harm when it is made twice, while the connection is away. */
  readonly retry: Retry;
  /** The same in one session. */
  retryIn(session: BoundSession): Retry;
}

/**
 * Does what may take some time, in that time.
 *
 * @param what the rest of the sentence "PATH … within 5 ms", for the time-out
 * @throws {WaitTimeoutError} the time is up @throws {ZooKeeperError} `timeout` for no connection in time, and
 * for no answer to what does not wait
 * @throws `signal.reason`
 */
export async function inTime<T>(
  recipe: Recipe,
  options: WaitOptions,
  what: string,
  work: (wait: Wait) => Promise<T>,
): Promise<T> {
  const { timeoutMs, signal } = checked(options, { timeoutMs: maybe(MS) });
  const { zookeeper, clock, path } = recipe;
  const waitMs = timeoutMs ?? Number.POSITIVE_INFINITY;
  const late = () => new WaitTimeoutError(`${zookeeper.description}: ${path} ${what} within ${timeoutMs} ms`);
  const begun = clock.monotonic();
  // How long others are waited for is one thing, how long the servers are another.
  const atLeastMs = Math.max(waitMs, CALL_TIMEOUT_MS);
  const connecting = zookeeper.whenConnected({ timeoutMs: atLeastMs, signal });
  await connecting.catch((error: unknown) => {
    if (isFault(error, 'aborted')) signal?.throwIfAborted();
    throw error;
  });
  const tookMs = clock.monotonic() - begun;
  const isTry = waitMs <= tookMs;
  const limitMs = (isTry ? atLeastMs : waitMs) - tookMs;
  // `timeout`: the servers did not answer, or the connection was away, when the time was up.
  const atEnd = () =>
    isTry || zookeeper.state.status !== 'connected'
      ? new ZooKeeperError(
          `${zookeeper.description}: ${path}: no answer within ${Math.round(limitMs)} ms`,
          'timeout',
          'unknown',
          path,
        )
      : late();
  const limit =
    limitMs === Number.POSITIVE_INFINITY ? undefined : timeoutSignal(clock, limitMs, atEnd, signal);
  const either = limit ? limit.signal : signal;
  const retryIn = (session?: BoundSession) => whileConnectionIsAway({ ...recipe, signal: either }, session);
  try {
    return await work({
      recipe,
      signal: either,
      isTry,
      late,
      retry: (attempt) => retryIn()(attempt),
      retryIn,
    });
  } catch (error) {
    if (isFault(error, 'aborted')) either?.throwIfAborted();
    throw error;
  } finally {
    limit?.release();
  }
}

/** The options of what does not wait for others: 5 s by default. */
export const withCallTimeout = (options: WaitOptions = {}): WaitOptions =>
  OBJECT.is(options) && options.timeoutMs === undefined
    ? { ...options, timeoutMs: CALL_TIMEOUT_MS }
    : options;

/**
 * What became of a write: the answer to the last attempt, or its error, and whether another attempt may have
 * been carried out.
 */
type Written<T> = { readonly value?: T; readonly error?: unknown; readonly mayBeDone: boolean };

/**
 * Makes a write whose attempts together change something once at the most, by their conditions. Never
 * rejects.
 */
export async function writeOnce<T>(
  retry: Retry,
  write: (call: CallOptions) => Promise<T>,
): Promise<Written<T>> {
  let mayBeDone = false;
  const attempt = (call: CallOptions) =>
    write(call).catch((error: unknown) => {
      mayBeDone ||= isUnknown(error);
      throw error;
    });
  try {
    return { value: await retry(attempt), mayBeDone };
  } catch (error) {
    return { error, mayBeDone };
  }
}

/**
 * Waits until a znode, undefined for none, is as expected.
 *
 * @param session in which to wait @throws {ZooKeeperError} access denied, client closed, or `session-expired`
 * @throws as {@link inTime}
 */
export function untilData(
  wait: Wait,
  path: string,
  isIt: (now: Znode | undefined) => boolean,
  session?: BoundSession,
) {
  const watch = (notify: (now: Znode | undefined) => void) => wait.recipe.zookeeper.watchData(path, notify);
  return untilSeen(wait, path, watch, isIt, session);
}

/** Waits until a znode is gone whose path is not used again. @param next as of {@link untilSeen} */
export function untilRemoved<T = void>(
  wait: Wait,
  path: string,
  session?: BoundSession,
  next: () => Promise<T> = nothing,
) {
  const watch = (notify: (isGone: true) => void) =>
    wait.recipe.zookeeper.watchRemoval(path, () => notify(true));
  return untilSeen(wait, path, watch, () => true, session, next);
}

/** The same for the names of its children, none where it is absent. */
export function untilChildren<T = void>(
  wait: Wait,
  path: string,
  isIt: (now: readonly string[]) => boolean,
  session?: BoundSession,
  next: () => Promise<T> = nothing,
) {
  const watch = (notify: (now: readonly string[] | undefined) => void) =>
    wait.recipe.zookeeper.watchChildren(path, notify);
  return untilSeen(wait, path, watch, (now = []) => isIt(now), session, next);
}

/** Waits until its children have other names than these. @param next as of {@link untilSeen} */
export function untilChange<T = void>(
  wait: Wait,
  path: string,
  names: readonly string[],
  session?: BoundSession,
  next?: () => Promise<T>,
) {
  const seen = new Set(names);
  const differs = (now: readonly string[]) => now.length !== seen.size || now.some((name) => !seen.has(name));
  return untilChildren(wait, path, differs, session, next);
}

/** Where nothing comes next, T is void. */
const nothing = () => Promise.resolve(undefined as never);

/**
 * @param next is done as soon as it is seen, before anything else that came with that: its request is the
 * next one to be sent
 */
async function untilSeen<S, T = void>(
  { recipe, signal, isTry, late }: Wait,
  path: string,
  watch: (notify: (now: S) => void) => Watch,
  isIt: (now: S) => boolean,
  session: BoundSession | undefined,
  next: () => Promise<T> = nothing,
): Promise<T> {
  const { zookeeper, clock } = recipe;
  let onSeen: (next: Promise<T>) => void = () => undefined;
  let onRefused: (error: unknown) => void = () => undefined;
  let isSeen = false;
  const seen = new Promise<T>((resolve, reject) => {
    onSeen = resolve;
    onRefused = reject;
  });
  // A watch does not show that it is refused, or that the session is over; a read does.
  const retry = whileConnectionIsAway({ ...recipe, signal }, session);
  const ask = () => retry((call) => (session ?? zookeeper).read(path, call));
  const isOver = () => session?.isOver || zookeeper.state.status === 'closed';
  if (isOver()) await ask();
  const standing = watch((now) => {
    if (!isIt(now)) return;
    // At once: an open watch reads again after every change.
    standing.close();
    isSeen = true;
    onSeen(next());
  });
  const forgetState = zookeeper.onState(() => {
    if (!isOver()) return;
    // Or it would be set in the next session.
    standing.close();
    void ask().catch(onRefused);
  });
  const set = standing.first.then(() => !isTry || isSeen || Promise.reject(late()));
  try {
    const isSet = await withTimeout(clock, WATCH_MS, Promise.race([seen, set]), signal);
    if (!isSet && !isSeen) await ask().catch(onRefused);
    return await orAborted(isTry ? Promise.race([seen, set.then(() => seen)]) : seen, signal);
  } finally {
    standing.close();
    forgetState();
  }
}
