import type { Duplex } from 'node:stream';
import type { ServiceInstance } from '../instance/service-instance.js';
import { type InstancePicker, noInstance, pickTarget, type TargetCondition } from './instance-target.js';
import { IDEMPOTENT_METHODS, isInstanceFault, isReplayable, isUntouched } from './retry-rules.js';
import type { RoutingSettings } from './routing-options.js';

// undici's own terms, as far as they are needed here: nodelease does not depend on undici, and takes the one
// that the user has.

/** The options of a request for undici. Options that are not named here are passed on unchanged. */
export interface DispatchOptions {
  readonly origin?: string | URL;
  readonly path: string;
  readonly method: string;
  readonly body?: unknown;
  readonly idempotent?: boolean | null;
  readonly upgrade?: boolean | string | null;
  readonly headersTimeout?: number | null;
}

/** How the handlers of undici 7 and later control a request; it has further fields. */
export interface DispatchController {
  abort(reason: Error): void;
}

/** The receiver of a response, in the terms of undici 6 and of Node's own `fetch`. */
export interface LegacyHandler {
  onConnect?(abort: (reason?: Error) => void, context?: unknown): void;
  onError?(error: Error): void;
  onUpgrade?(status: number, headers: unknown, socket: Duplex): void;
  onResponseStarted?(): void;
  onHeaders?(status: number, headers: unknown, resume: () => void, statusText: string): boolean;
  onData?(chunk: Buffer): boolean;
  onComplete?(trailers: unknown): void;
  onBodySent?(chunkSize: number, totalBytesSent: number): void;
  onRequestSent?(): void;
}

/** The receiver of a response, in the terms of undici 7 and later. */
export interface ControlledHandler {
  onRequestStart?(controller: DispatchController, context: unknown): void;
  onRequestUpgrade?(controller: DispatchController, status: number, headers: unknown, socket: Duplex): void;
  onResponseStarted?(): void;
  onResponseStart?(
    controller: DispatchController,
    status: number,
    headers: unknown,
    statusText?: string,
  ): void;
  onResponseData?(controller: DispatchController, chunk: Buffer): void;
  onResponseEnd?(controller: DispatchController, trailers: unknown): void;
  onResponseError?(controller: DispatchController, error: Error): void;
}

export type DispatchHandler = LegacyHandler | ControlledHandler;

/** Begins a request. Returns false when the dispatcher has enough to do for now. */
export type Dispatch = (options: DispatchOptions, handler: DispatchHandler) => boolean;

/** Makes an attempt, which is undici's handler of it. */
export type NewAttempt = (exchange: Exchange, instance: ServiceInstance) => RequestAttempt & DispatchHandler;

/**
 * One request of a caller, from its beginning to its end, over all its attempts. It decides which events of
 * each attempt the caller receives.
 */
export class Exchange<P = unknown> {
  /** Whether the caller has given up, and why, if it said so. */
  aborted = false;
  reason: Error | undefined;
  readonly #fits: TargetCondition;
  readonly #tried = new Set<ServiceInstance<P>>();
  #attempts = 0;
  #current: (RequestAttempt & DispatchHandler) | undefined;
  /** The last attempt whose failure has been noted. */
  #noted: RequestAttempt | undefined;
  #announced = false;
  /** The caller has received a response, or an upgrade: a further attempt is no longer possible. */
  #answered = false;
  /** The caller has been notified of the end. */
  #ended = false;

  /** @param fail notifies the caller that the exchange has failed */
  constructor(
    private readonly picker: InstancePicker<P>,
    private readonly settings: RoutingSettings,
    private readonly dispatch: Dispatch,
    private readonly options: DispatchOptions,
    private readonly newAttempt: NewAttempt,
    private readonly fail: (error: Error) => void,
  ) {
    const isSecure = String(options.origin).startsWith('https:');
    this.#fits = ({ protocol }) => !isSecure || protocol === 'https:';
  }

  /** Makes the first attempt. Returns the result of the dispatcher. */
  start(): boolean {
    const begun = this.#attempt();
    if (begun === undefined) this.#end(noInstance(this.picker, this.#tried, this.#fits));
    return begun ?? false;
  }

  /** The caller gives up. */
  abort(reason?: Error): void {
    if (this.#ended) return;
    this.aborted = true;
    this.reason = reason;
    if (this.#current?.sent) this.#current.cancel(reason);
    // Between two attempts there is nothing to cancel yet. The next one is cancelled when it begins.
    else this.#end(reason ?? new DOMException('The request was aborted.', 'AbortError'));
  }

  /**
   * Whether the caller is still to be notified that the request begins. True once, for any number of
   * attempts.
   */
  announces(): boolean {
    const first = !this.#announced;
    this.#announced = true;
    return first;
  }

  /**
   * Whether the caller receives the events of an attempt: not once another one has replaced it, or the caller
   * knows of the end.
   */
  wants(attempt: RequestAttempt): boolean {
    return !this.#ended && attempt === this.#current;
  }

  /** Whether the caller receives a response that begins. */
  passes(attempt: RequestAttempt, status: number): boolean {
    if (!this.wants(attempt)) return false;
    if (status < 200) return true;
    if (this.settings.retryStatuses.has(status)) {
      this.#note(attempt);
      if (this.#mayRepeat() && this.#next()) return false;
    }
    this.#answered = true;
    return true;
  }

  /**
   * Whether the caller receives the end of an answer, or an upgrade, after which the connection is the
   * caller's.
   */
  ends(attempt: RequestAttempt): boolean {
    const isWanted = this.wants(attempt);
    if (isWanted) this.#ended = true;
    return isWanted;
  }

  /** Whether the caller receives an attempt's failure. */
  fails(attempt: RequestAttempt, error: unknown): boolean {
    if (!this.wants(attempt)) return false;
    if (!this.aborted && isInstanceFault(error, attempt.sent, this.options.body)) {
      this.#note(attempt);
      const repeatable = attempt.sent ? this.#mayRepeat() : isUntouched(this.options.body);
      if (!this.#answered && repeatable && this.#next()) return false;
    }
    return this.ends(attempt);
  }

  #note(attempt: RequestAttempt): void {
    if (this.#noted === attempt) return;
    this.#noted = attempt;
    this.picker.noteError(attempt.instance as ServiceInstance<P>);
  }

  /** Whether the request may be sent again though the instance may have acted on it. */
  #mayRepeat() {
    const { idempotent, method, body } = this.options;
    return (idempotent ?? IDEMPOTENT_METHODS.has(method)) && isReplayable(body);
  }

  /** Tries another instance. Returns false without another one, or after enough attempts. */
  #next(): boolean {
    const { upgrade, method } = this.options;
    // An upgrade, or a CONNECT, is for the connection itself, and is tried once.
    if (upgrade || method === 'CONNECT' || this.#attempts >= this.settings.maxAttempts) return false;
    try {
      return this.#attempt() !== undefined;
    } catch (error) {
      this.#end(error instanceof Error ? error : new Error(String(error)));
      return true;
    }
  }

  /** Tries an instance. Returns the result of the dispatcher; undefined without an instance. */
  #attempt(): boolean | undefined {
    const picked = pickTarget(this.picker, this.#tried, this.#fits);
    if (picked === undefined) return undefined;
    const { instance, target } = picked;
    const { path, headersTimeout } = this.options;
    const headersTimeoutMs = headersTimeout ?? this.settings.headersTimeoutMs;
    this.#attempts += 1;
    this.#tried.add(instance);
    this.#current = this.newAttempt(this as Exchange, instance);
    const request = {
      ...this.options,
      origin: target.origin,
      path: path.startsWith('/') ? target.basePath + path : path,
      ...(headersTimeoutMs !== undefined && { headersTimeout: headersTimeoutMs }),
    };
    // A dispatcher that returns nothing, as that of undici's MockAgent, has begun all the same.
    return this.dispatch(request, this.#current) ?? true;
  }

  #end(error: Error): void {
    if (this.#ended) return;
    this.#ended = true;
    this.fail(error);
  }
}

/**
 * One attempt to send a request to one instance. A subclass reports it to the caller, in the terms of one of
 * undici's two kinds of handlers.
 */
export abstract class RequestAttempt {
  #cancel: ((reason?: Error) => void) | undefined;

  constructor(
    protected readonly exchange: Exchange,
    readonly instance: ServiceInstance,
  ) {}

  /** Whether a connection was found, so that something may have been sent. */
  get sent(): boolean {
    return this.#cancel !== undefined;
  }

  /**
   * Whether the caller receives its events. Some dispatchers, such as undici's `MockAgent`, continue an
   * attempt that was cancelled.
   */
  protected get wanted(): boolean {
    return this.exchange.wants(this);
  }

  /**
   * A connection was found. Returns whether to notify the caller that the request begins; an attempt that is
   * not wanted is cancelled.
   */
  protected begin(cancel: (reason?: Error) => void): boolean {
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
