import { orAborted, timeoutSignal, withTimeout } from '../base/abort.js';
import { WaitTimeoutError } from '../base/errors.js';
import type { BoundSession } from '../zookeeper/bound-session.js';
import type { CallOptions, Watch, Znode, ZooKeeper } from '../zookeeper/zookeeper.js';
import { isFault, ZooKeeperError } from '../zookeeper/zookeeper-error.js';
import { checkTimeout, type Recipe, repeated, type WaitOptions } from './recipe.js';

/** How long may take what does not wait for others, in milliseconds. */
export const CALL_MS = 5_000;
/**
 * How long a watch may take to be set before the servers are asked whether they refuse it, in milliseconds.
 */
const WATCH_MS = 1_000;

/** One wait for others. */
export interface Wait {
  /** Aborts when the time is up, or with the caller's signal; undefined where there is neither. */
  readonly signal: AbortSignal | undefined;
  /** Whether what is not there at once is not waited for. */
  readonly isTry: boolean;
  late(): WaitTimeoutError;
}

/**
 * Does what may take some time, in that time.
 *
 * @param what the rest of the sentence "PATH … within 5 ms", for the time-out
 * @throws {WaitTimeoutError} the time is up @throws {ZooKeeperError} `timeout` for no connection in time
 * @throws `signal.reason`
 */
export async function inTime<T>(
  { zookeeper, clock, path }: Recipe,
  { timeoutMs, signal }: WaitOptions,
  what: string,
  work: (wait: Wait) => Promise<T>,
): Promise<T> {
  const limitMs = checkTimeout(timeoutMs) || CALL_MS;
  const late = () => new WaitTimeoutError(`${zookeeper.description}: ${path} ${what} within ${timeoutMs} ms`);
  const limit =
    limitMs === Number.POSITIVE_INFINITY ? undefined : timeoutSignal(clock, limitMs, late, signal);
  try {
    await zookeeper.whenConnected({ timeoutMs: limitMs, signal });
    return await work({ signal: limit ? limit.signal : signal, isTry: timeoutMs === 0, late });
  } catch (error) {
    if (isFault(error, 'aborted')) (limit?.signal ?? signal)?.throwIfAborted();
    throw error;
  } finally {
    limit?.release();
  }
}

/** What does not wait for others takes 5 s at the most, unless told otherwise. */
export const briefly = ({ timeoutMs = CALL_MS, signal }: WaitOptions = {}): WaitOptions => ({
  timeoutMs,
  signal,
});

/**
 * What became of a write: the answer to the last attempt, or its error, and whether another attempt may have
 * been carried out.
 */
export type Written<T> = { readonly value?: T; readonly error?: unknown; readonly mayBeDone: boolean };

/**
 * Makes a write whose attempts together change something once at the most, by their conditions. Never
 * rejects.
 */
export async function writeOnce<T>(
  ...[recipe, signal, write, session]: Parameters<typeof repeated<T>>
): Promise<Written<T>> {
  let mayBeDone = false;
  let done: { readonly value: T } | undefined;
  const attempt = async (call: CallOptions) => {
    try {
      done = { value: await write(call) };
      return done.value;
    } catch (error) {
      mayBeDone ||= error instanceof ZooKeeperError && error.outcome === 'unknown';
      throw error;
    }
  };
  try {
    return { value: await repeated(recipe, signal, attempt, session), mayBeDone };
  } catch (error) {
    // It may have been given up after its answer.
    return done ? { ...done, mayBeDone } : { error, mayBeDone };
  }
}

/**
 * Waits until a znode, undefined for none, is as expected.
 *
 * @param session in which to wait @throws {ZooKeeperError} access denied, client closed, or `session-expired`
 * @throws as {@link inTime}
 */
export function untilData(
  recipe: Recipe,
  wait: Wait,
  path: string,
  isIt: (now: Znode | undefined) => boolean,
  session?: BoundSession,
) {
  const watch = (tell: (now: Znode | undefined) => void) => recipe.zookeeper.watchData(path, tell);
  return untilTold(recipe, wait, watch, (from, call) => from.read(path, call), isIt, session);
}

/** Waits until a znode is gone whose path is not used again. @param next as of {@link untilTold} */
export function untilRemoved<T = void>(
  recipe: Recipe,
  wait: Wait,
  path: string,
  session?: BoundSession,
  next: () => Promise<T> = nothing,
) {
  const watch = (tell: (isGone: true) => void) => recipe.zookeeper.watchRemoval(path, () => tell(true));
  return untilTold(
    recipe,
    wait,
    watch,
    (from, call) => from.read(path, call),
    () => true,
    session,
    next,
  );
}

/** The same for the names of its children, none where it is absent. */
export function untilChildren<T = void>(
  recipe: Recipe,
  wait: Wait,
  path: string,
  isIt: (now: readonly string[]) => boolean,
  session?: BoundSession,
  next: () => Promise<T> = nothing,
) {
  const watch = (tell: (now: readonly string[] | undefined) => void) =>
    recipe.zookeeper.watchChildren(path, tell);
  return untilTold(
    recipe,
    wait,
    watch,
    (from, call) => from.children(path, call),
    (now = []) => isIt(now),
    session,
    next,
  );
}

/** Where nothing comes next, T is void. */
const nothing = () => Promise.resolve(undefined as never);

/**
 * @param next is done as soon as it is told, before anything else that came with that: its request is the
 * next one to be sent
 */
async function untilTold<S, T = void>(
  recipe: Recipe,
  { signal, isTry, late }: Wait,
  watch: (tell: (now: S) => void) => Watch,
  read: (from: Pick<ZooKeeper, 'read' | 'children'>, call: CallOptions) => Promise<unknown>,
  isIt: (now: S) => boolean,
  session: BoundSession | undefined,
  next: () => Promise<T> = nothing,
): Promise<T> {
  const { zookeeper, clock } = recipe;
  let onTold: (next: Promise<T>) => void = () => undefined;
  let onRefused: (error: unknown) => void = () => undefined;
  let isTold = false;
  const told = new Promise<T>((resolve, reject) => {
    onTold = resolve;
    onRefused = reject;
  });
  // A watch does not tell that it is refused, or that the session is over; a read does.
  const ask = () => repeated(recipe, signal, (call) => read(session ?? zookeeper, call), session);
  const isOver = () => session?.isOver || zookeeper.state.status === 'closed';
  if (isOver()) await ask();
  const standing = watch((now) => {
    if (!isIt(now)) return;
    // At once: a watch that stands is read again after every change.
    standing.close();
    isTold = true;
    onTold(next());
  });
  const forgetState = zookeeper.onState(() => {
    if (!isOver()) return;
    // Or it would be set in the next session.
    standing.close();
    void ask().catch(onRefused);
  });
  const set = standing.first.then(() => !isTry || isTold || Promise.reject(late()));
  try {
    const isSet = await withTimeout(clock, WATCH_MS, Promise.race([told, set]), signal);
    if (!isSet && !isTold) await ask().catch(onRefused);
    return await orAborted(isTry ? Promise.race([told, set.then(() => told)]) : told, signal);
  } finally {
    standing.close();
    forgetState();
  }
}
