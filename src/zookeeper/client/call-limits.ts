import { onAbort } from '../../core/base/abort.js';
import type { Clock } from '../../core/base/clock.js';
import { concurrently } from '../../core/base/concurrently.js';
import type { CallOptions } from './zookeeper.js';

/** Maximum number of calls that one operation on many znodes has under way at a time. */
export const CALLS_AT_ONCE = 64;

/** As {@link concurrently}, for the calls of one operation on many znodes. */
export const concurrentCalls = <T, R>(
  items: readonly T[],
  call: (item: T, signal: AbortSignal) => Promise<R>,
  signal?: AbortSignal,
) => concurrently(items, CALLS_AT_ONCE, call, signal);

/**
 * The options of several requests that are one call, and so have one deadline. It counts from the first on.
 */
export function oneCall(
  clock: Pick<Clock, 'monotonic'>,
  given: CallOptions,
  defaultMs: number,
): () => CallOptions {
  let deadline: number | undefined;
  return () => {
    const now = clock.monotonic();
    deadline ??= now + (given.timeoutMs ?? defaultMs);
    return { ...given, timeoutMs: Math.max(0, deadline - now) };
  };
}

/** When one call ends before its answer. */
export class CallLimit {
  #over: { readonly reason: unknown } | undefined;
  #reject: (reason: unknown) => void = () => undefined;

  constructor(readonly deadline: number) {}

  /** Ends the call, with the first reason that is given. */
  end(reason: unknown): void {
    this.#over ??= { reason };
    this.#reject(reason);
  }

  /**
   * Settles as `work()` does, or rejects as soon as the call is over; `work` is not begun where it is over
   * before. One at a time.
   */
  bound<T>(work: () => Promise<T>): Promise<T> {
    return new Promise((resolve, reject) => {
      if (this.#over) return reject(this.#over.reason);
      this.#reject = reject;
      work().then(resolve, reject);
    });
  }
}

/**
 * The deadlines of all calls of a client, by one timer: most calls end long before, and most deadlines come
 * in the order of the calls.
 */
export class CallLimits {
  /** How each call lets go of its signal. */
  readonly #open = new Map<CallLimit, () => void>();
  #closed: { readonly reason: unknown } | undefined;
  #timer = new AbortController();
  /** When the timer fires, maybe for a call that has ended by then. */
  #wakesAt = Number.POSITIVE_INFINITY;

  /** @param late why a call ends at its deadline */
  constructor(
    private readonly clock: Pick<Clock, 'monotonic' | 'sleep'>,
    private readonly late: unknown,
  ) {}

  /**
   * A call begins at `now`. It is over after `timeoutMs`, when `signal` aborts, with its reason, or when this
   * is closed. To be released.
   */
  begin(now: number, timeoutMs: number, signal: AbortSignal | undefined): CallLimit {
    const limit = new CallLimit(now + timeoutMs);
    if (this.#closed) limit.end(this.#closed.reason);
    this.#open.set(
      limit,
      onAbort(signal, () => limit.end(signal?.reason)),
    );
    if (limit.deadline < this.#wakesAt) void this.#wakeAt(limit.deadline, timeoutMs);
    return limit;
  }

  /** The call has ended. */
  release(limit: CallLimit): void {
    this.#open.get(limit)?.();
    this.#open.delete(limit);
  }

  /** Ends every call, also each that begins later. */
  close(reason: unknown): void {
    this.#closed = { reason };
    this.#timer.abort();
    this.#wakesAt = Number.NEGATIVE_INFINITY;
    for (const limit of this.#open.keys()) limit.end(reason);
  }

  async #wakeAt(deadline: number, ms: number): Promise<void> {
    this.#timer.abort();
    const timer = new AbortController();
    this.#timer = timer;
    this.#wakesAt = deadline;
    await this.clock.sleep(ms, timer.signal).catch(() => undefined);
    if (timer.signal.aborted) return;
    const now = this.clock.monotonic();
    let next = Number.POSITIVE_INFINITY;
    for (const limit of this.#open.keys()) {
      if (limit.deadline <= now) limit.end(this.late);
      else next = Math.min(next, limit.deadline);
    }
    this.#wakesAt = next;
    if (next !== Number.POSITIVE_INFINITY) void this.#wakeAt(next, next - now);
  }
}
