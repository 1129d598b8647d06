import type { Clock } from './clock.js';
import { notify } from './listeners.js';

// Waiting, and how it is ended early. `AbortSignal.any` is not used: on Node 20 its signals stay in memory as long as their
// sources live.

interface Callbacks {
  readonly all: Set<() => void>;
  /** Removes the listener. */
  readonly stop: () => void;
}

const callbacksOf = new WeakMap<AbortSignal, Callbacks>();

/**
 * Calls `callback` when `signal` aborts, at once if it has aborted already. The returned function cancels
 * that.
 *
 * A signal has one listener, for any number of callbacks: above ten listeners Node warns of a leak.
 */
export function onAbort(signal: AbortSignal | undefined, callback: () => void): () => void {
  if (signal === undefined) return () => undefined;
  if (signal.aborted) {
    callback();
    return () => undefined;
  }
  const callbacks = callbacksOf.get(signal) ?? listenTo(signal);
  // A new function for each call: the same callback may be given twice.
  const own = () => callback();
  callbacks.all.add(own);
  return () => {
    if (callbacks.all.delete(own) && callbacks.all.size === 0) callbacks.stop();
  };
}

function listenTo(signal: AbortSignal): Callbacks {
  const all = new Set<() => void>();
  const listener = () => {
    callbacksOf.delete(signal);
    for (const callback of all) notify(callback, undefined);
  };
  const stop = () => {
    callbacksOf.delete(signal);
    signal.removeEventListener('abort', listener);
  };
  signal.addEventListener('abort', listener, { once: true });
  const callbacks = { all, stop };
  callbacksOf.set(signal, callbacks);
  return callbacks;
}

/**
 * Resolves to the reason when `signal` aborts. The callback stays until then: use it for signals that end
 * with the caller.
 */
export function aborted(signal: AbortSignal): Promise<unknown> {
  return new Promise((resolve) => {
    onAbort(signal, () => resolve(signal.reason));
  });
}

/**
 * Settles as `work` does, or rejects with `signal.reason` as soon as `signal` aborts. The work itself
 * continues, and its result is ignored: a write that is left this way has an unknown outcome.
 */
export async function orAborted<T>(work: Promise<T>, signal: AbortSignal | undefined): Promise<T> {
  if (signal === undefined) return work;
  let cancel: () => void = () => undefined;
  const aborting = new Promise<never>((_, reject) => {
    cancel = onAbort(signal, () => reject(signal.reason));
  });
  try {
    return await Promise.race([aborting, work]);
  } finally {
    cancel();
  }
}

/**
 * Settles as `work` does, or resolves to undefined after `ms` milliseconds.
 * @throws `signal.reason` once `signal` aborts
 */
export async function withTimeout<T>(
  clock: Pick<Clock, 'sleep'>,
  ms: number,
  work: Promise<T>,
  signal?: AbortSignal,
): Promise<T | undefined> {
  const timer = new AbortController();
  const timeout = clock.sleep(ms, timer.signal).then(nothing, nothing);
  try {
    return await orAborted(Promise.race([work, timeout]), signal);
  } finally {
    timer.abort(OVER);
  }
}

const nothing = () => undefined;
/**
 * The reason with which a timer ends that is not needed any more. Without a reason Node creates an error, and
 * captures the stack.
 */
const OVER = 'over';

/**
 * A controller whose signal is created at its first use: creating and aborting one takes longer than much of
 * a short tenure.
 */
export class LateSignal {
  #controller: AbortController | undefined;
  #aborted: { readonly reason: unknown } | undefined;

  /** Why it was aborted; undefined before. */
  get aborted(): { readonly reason: unknown } | undefined {
    return this.#aborted;
  }

  get signal(): AbortSignal {
    if (this.#controller === undefined) {
      this.#controller = new AbortController();
      if (this.#aborted) this.#controller.abort(this.#aborted.reason);
    }
    return this.#controller.signal;
  }

  /** Later calls change nothing. */
  abort(reason: unknown): void {
    this.#aborted ??= { reason };
    this.#controller?.abort(this.#aborted.reason);
  }
}

/**
 * A signal that was made from others. Call `release()` when it is not needed any more: until then the others
 * hold it.
 */
interface DerivedSignal {
  readonly signal: AbortSignal;
  release(): void;
}

/** Aborts as soon as one of `signals` does, with its reason. */
export function anySignal(...signals: readonly (AbortSignal | undefined)[]): DerivedSignal {
  const controller = new AbortController();
  const cancel = signals.map((signal) => onAbort(signal, () => controller.abort(signal?.reason)));
  return {
    signal: controller.signal,
    release: () => {
      for (const each of cancel) each();
    },
  };
}

/** Aborts with `reason()` after `ms` milliseconds, or as soon as one of `signals` does, with its reason. */
export function timeoutSignal(
  clock: Pick<Clock, 'sleep'>,
  ms: number,
  reason: () => Error,
  ...signals: readonly (AbortSignal | undefined)[]
): DerivedSignal {
  const timeout = new AbortController();
  const timer = new AbortController();
  clock.sleep(ms, timer.signal).then(() => timeout.abort(reason()), nothing);
  const any = anySignal(timeout.signal, ...signals);
  return {
    signal: any.signal,
    release: () => {
      timer.abort(OVER);
      any.release();
    },
  };
}

/** How long {@link callWithTimeout} waits. */
interface CallTimeout {
  readonly clock: Pick<Clock, 'sleep'>;
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
  const late = () => new DOMException(`no answer within ${timeoutMs} ms`, 'TimeoutError');
  const limit = timeoutSignal(clock, timeoutMs, late, signal);
  try {
    return await orAborted(work(limit.signal), limit.signal);
  } finally {
    limit.release();
  }
}

/**
 * Waits for a state: settles as `bound` does, which gets the promise of the first value but undefined of `find`.
 *
 * @param subscribe calls a listener at each change, until the returned function is called
 * @param find is asked now, and at each change until it has found one. Must not throw
 * @param bound ends the wait sooner, or returns its argument
 */
export async function until<T, R>(
  subscribe: (listener: () => void) => () => void,
  find: () => T | undefined,
  bound: (found: Promise<T>) => Promise<R>,
): Promise<R> {
  let forget: () => void = () => undefined;
  const found = new Promise<T>((resolve) => {
    const check = () => {
      const value = find();
      if (value === undefined) return;
      forget();
      resolve(value);
    };
    forget = subscribe(check);
    check();
  });
  try {
    return await bound(found);
  } finally {
    forget();
  }
}

/** Ends the wait of a loop. Nothing is missed: a call while the loop does not wait ends its next wait at once. */
export class WakeUp {
  #isDue = false;
  #end: () => void = () => undefined;

  /** Can be given away as a function. */
  readonly wake = (): void => {
    this.#isDue = true;
    this.#end();
  };

  /**
   * Waits for `wake()`, and no longer than `timeoutMs`: not at all if that is 0. One loop at a time waits.
   * @throws `signal.reason` once `signal` aborts
   */
  async wait(
    limit?: { readonly clock: Pick<Clock, 'sleep'>; readonly timeoutMs: number },
    signal?: AbortSignal,
  ): Promise<void> {
    if (limit === undefined || limit.timeoutMs > 0) {
      const woken = new Promise<void>((resolve) => {
        this.#end = resolve;
        if (this.#isDue) resolve();
      });
      await (limit ? withTimeout(limit.clock, limit.timeoutMs, woken, signal) : orAborted(woken, signal));
    }
    this.#isDue = false;
  }
}
