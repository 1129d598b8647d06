import type { ServiceInstance } from '../service-instance.js';
import type { Dispatch, DispatchHandler, DispatchOptions } from './dispatch.js';
import { type InstancePicker, type InstanceTarget, noInstance, type PickedTarget, pickTarget } from './instance-target.js';
import { isIdempotent, isInstanceFault, isReplayable, isUntouched } from './retry-rules.js';
import type { RoutingSettings } from './routing-options.js';

/**
 * One request of a caller, from its beginning to its end, over as many attempts as it takes. It decides what the caller learns of each
 * attempt; `attempt-handlers.ts` puts that into the words of undici's two sorts of handlers.
 */
export class Exchange<P = unknown> {
  /** Whether the caller has given up. */
  aborted = false;
  /** Why, if it said so. */
  reason: Error | undefined;
  readonly #secure: boolean;
  readonly #fits = ({ protocol }: InstanceTarget): boolean => !this.#secure || protocol === 'https:';
  readonly #tried = new Set<ServiceInstance<P>>();
  #attempts = 0;
  #current: Attempt | undefined;
  #announced = false;
  /** The caller has been told of a response, or of an upgrade: there is no going back. */
  #answered = false;
  /** The caller has been told of the end. */
  #ended = false;

  /**
   * @param newHandler makes undici's handler for one attempt
   * @param fail tells the caller that the exchange has failed
   */
  constructor(
    private readonly picker: InstancePicker<P>,
    private readonly settings: RoutingSettings,
    private readonly dispatch: Dispatch,
    private readonly options: DispatchOptions,
    private readonly newHandler: (attempt: Attempt) => DispatchHandler,
    private readonly fail: (error: Error) => void,
  ) {
    this.#secure = options.origin !== undefined && String(options.origin).startsWith('https:');
  }

  /** Makes the first attempt. Returns what the dispatcher does. */
  start(): boolean {
    const picked = this.#pick();
    if (picked === undefined) {
      this.#end(noInstance(this.picker, this.#tried, this.#fits));
      return false;
    }
    return this.#attempt(picked);
  }

  /** The caller gives up. */
  abort(reason?: Error): void {
    if (this.#ended) return;
    this.aborted = true;
    this.reason = reason;
    if (this.#current?.sent) this.#current.cancel(reason);
    // Between two attempts there is nothing to cancel yet. The next one is when it begins.
    else this.#end(reason ?? new DOMException('The request was aborted.', 'AbortError'));
  }

  /** Whether the caller has yet to be told that the request begins. True once, however many attempts there are. */
  announces(): boolean {
    const first = !this.#announced;
    this.#announced = true;
    return first;
  }

  /** The caller is about to be told of an attempt's end. */
  ended(): void {
    this.#ended = true;
  }

  /** Whether what an attempt tells is for the caller: not once another one has taken its place, or the caller knows of the end. */
  wants(attempt: Attempt): boolean {
    return !this.#ended && attempt === this.#current;
  }

  /** Whether the caller is to be told of a response that begins. */
  passes(attempt: Attempt, status: number): boolean {
    if (!this.wants(attempt)) return false;
    if (status < 200) return true;
    if (this.settings.retryStatuses.has(status)) {
      this.#note(attempt);
      if (this.#mayRepeat() && this.#next()) return false;
    }
    this.#answered = true;
    return true;
  }

  /** Whether the caller is to be told of an upgrade, which is the end as far as we are concerned. */
  upgrades(attempt: Attempt): boolean {
    if (!this.wants(attempt)) return false;
    this.#ended = true;
    return true;
  }

  /** Whether the caller is to be told of an attempt's failure. */
  fails(attempt: Attempt, error: unknown): boolean {
    if (!this.wants(attempt)) return false;
    if (!this.aborted && isInstanceFault(error, attempt.sent, this.options.body)) {
      this.#note(attempt);
      const repeatable = attempt.sent ? this.#mayRepeat() : isUntouched(this.options.body);
      if (!this.#answered && repeatable && this.#next()) return false;
    }
    this.#ended = true;
    return true;
  }

  #note(attempt: Attempt): void {
    if (attempt.noted) return;
    attempt.noted = true;
    this.picker.noteError(attempt.instance as ServiceInstance<P>);
  }

  /** Whether the request may be sent again though the instance may have acted on it. */
  #mayRepeat(): boolean {
    const { idempotent, method, body } = this.options;
    return (idempotent ?? isIdempotent(method)) && isReplayable(body);
  }

  /** Asks another instance. Returns false where there is none, or enough have been asked. */
  #next(): boolean {
    const { upgrade, method } = this.options;
    // An upgrade, or a CONNECT, is for the connection itself, and is tried once.
    if (upgrade || method === 'CONNECT' || this.#attempts >= this.settings.maxAttempts) return false;
    const picked = this.#pick();
    if (picked === undefined) return false;
    try {
      this.#attempt(picked);
    } catch (error) {
      this.#end(error instanceof Error ? error : new Error(String(error)));
    }
    return true;
  }

  #pick(): PickedTarget<P> | undefined {
    return pickTarget(this.picker, this.#tried, this.#fits);
  }

  #attempt({ instance, target }: PickedTarget<P>): boolean {
    this.#attempts += 1;
    this.#tried.add(instance);
    const attempt = new Attempt(this as Exchange, instance);
    this.#current = attempt;
    const { path, headersTimeout } = this.options;
    return this.dispatch(
      {
        ...this.options,
        origin: target.origin,
        path: target.basePath !== '' && path.startsWith('/') ? target.basePath + path : path,
        ...(headersTimeout == null && this.settings.headersTimeoutMs !== undefined
          ? { headersTimeout: this.settings.headersTimeoutMs }
          : undefined),
      },
      this.newHandler(attempt),
    );
  }

  #end(error: Error): void {
    if (this.#ended) return;
    this.#ended = true;
    this.fail(error);
  }
}

/** One sending of a request to one instance. */
export class Attempt {
  /** Whether its failure has been noted. */
  noted = false;
  #cancel: ((reason?: Error) => void) | undefined;

  constructor(
    readonly exchange: Exchange,
    readonly instance: ServiceInstance,
  ) {}

  /** Whether a connection was found, so that something may have been sent. */
  get sent(): boolean {
    return this.#cancel !== undefined;
  }

  /** Whether the caller is to hear of it. Some dispatchers, such as undici's `MockAgent`, go on with an attempt that was cancelled. */
  get wanted(): boolean {
    return this.exchange.wants(this);
  }

  /** A connection was found. Returns whether the caller is to be told that the request begins; an attempt that is not wanted is cancelled. */
  begin(cancel: (reason?: Error) => void): boolean {
    this.#cancel = cancel;
    if (this.wanted) return this.exchange.announces();
    this.cancel(this.exchange.reason);
    return false;
  }

  /** Ends it. The dispatcher reports that as a failure, with its own error where there is no reason. */
  cancel(reason?: Error): void {
    this.#cancel?.(reason);
  }
}
