import { onAbort } from '../base/abort.js';
import type { Clock } from '../base/clock.js';

/** When one call ends before its answer. Call {@link CallLimit.release} when it has ended. */
export class CallLimit {
  #over: { readonly reason: unknown } | undefined;
  #onOver: (reason: unknown) => void = () => undefined;

  constructor(
    readonly deadline: number,
    readonly release: () => void,
  ) {}

  /** Ends the call, with the first reason that is given. */
  end(reason: unknown): void {
    if (this.#over) return;
    this.#over = { reason };
    this.#onOver(reason);
  }

  /** Settles as `work()` does, or rejects as soon as the call is over: its result is ignored then. Not begun where it is over before. One at a time. */
  bound<T>(work: () => Promise<T>): Promise<T> {
    return new Promise((resolve, reject) => {
      if (this.#over) return reject(this.#over.reason);
      this.#onOver = reject;
      work().then(resolve, reject);
    });
  }
}

/** The deadlines of all calls of a client, by one timer: most calls end long before, and most deadlines come in the order of the calls. */
export class CallLimits {
  readonly #open = new Set<CallLimit>();
  #closed: { readonly reason: unknown } | undefined;
  #timer = new AbortController();
  /** When the timer fires; infinity for never. It may find that the call is over that it was set for. */
  #wakesAt = Number.POSITIVE_INFINITY;

  /** @param late why a call ends at its deadline */
  constructor(
    private readonly clock: Pick<Clock, 'monotonic' | 'sleep'>,
    private readonly late: unknown,
  ) {}

  /** A call begins at `now` that is over after `timeoutMs`, when `signal` aborts, with its reason, or when this is closed. */
  begin(now: number, timeoutMs: number, signal: AbortSignal | undefined): CallLimit {
    const deadline = now + timeoutMs;
    let forget: (() => void) | undefined;
    const limit = new CallLimit(deadline, () => {
      this.#open.delete(limit);
      forget?.();
    });
    if (this.#closed) limit.end(this.#closed.reason);
    else {
      this.#open.add(limit);
      if (signal) forget = onAbort(signal, () => limit.end(signal.reason));
      if (deadline < this.#wakesAt) void this.#wakeAt(deadline, timeoutMs);
    }
    return limit;
  }

  /** Ends every call, those that begin later too. */
  close(reason: unknown): void {
    this.#closed = { reason };
    this.#timer.abort();
    for (const limit of this.#open) limit.end(reason);
  }

  async #wakeAt(deadline: number, ms: number): Promise<void> {
    this.#timer.abort();
    const timer = new AbortController();
    this.#timer = timer;
    this.#wakesAt = deadline;
    await this.clock.sleep(ms, timer.signal).catch(() => undefined);
    if (timer.signal.aborted) return;
    this.#wakesAt = Number.POSITIVE_INFINITY;
    const now = this.clock.monotonic();
    for (const limit of this.#open) if (limit.deadline <= now) limit.end(this.late);
    const next = [...this.#open].reduce((first, limit) => (limit.deadline > now ? Math.min(first, limit.deadline) : first), this.#wakesAt);
    if (next !== Number.POSITIVE_INFINITY) void this.#wakeAt(next, next - now);
  }
}
