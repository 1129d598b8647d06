import type { Duplex } from 'node:stream';
import type { ControlledHandler, DispatchController, LegacyHandler } from './dispatch.js';
import type { Attempt, Exchange } from './exchange.js';

/** Tells a caller of one attempt in the words of undici 6, as far as it is to be told. */
export class LegacyAttempt implements LegacyHandler {
  constructor(
    private readonly attempt: Attempt,
    private readonly caller: LegacyHandler,
  ) {}

  onConnect(abort: (reason?: Error) => void, context?: unknown): void {
    const { exchange } = this.attempt;
    if (this.attempt.begin(abort)) this.caller.onConnect?.((reason) => exchange.abort(reason), context);
  }

  onBodySent(chunkSize: number, totalBytesSent: number): void {
    if (this.attempt.wanted) this.caller.onBodySent?.(chunkSize, totalBytesSent);
  }

  onRequestSent(): void {
    if (this.attempt.wanted) this.caller.onRequestSent?.();
  }

  onResponseStarted(): void {
    if (this.attempt.wanted) this.caller.onResponseStarted?.();
  }

  onUpgrade(status: number, headers: unknown, socket: Duplex): void {
    if (this.attempt.exchange.upgrades(this.attempt)) this.caller.onUpgrade?.(status, headers, socket);
    else socket.destroy();
  }

  onHeaders(status: number, headers: unknown, resume: () => void, statusText: string): boolean {
    if (this.attempt.exchange.passes(this.attempt, status)) return this.caller.onHeaders?.(status, headers, resume, statusText) ?? true;
    this.attempt.cancel();
    return false;
  }

  onData(chunk: Buffer): boolean {
    return this.attempt.wanted ? (this.caller.onData?.(chunk) ?? true) : true;
  }

  onComplete(trailers: unknown): void {
    if (!this.attempt.wanted) return;
    this.attempt.exchange.ended();
    this.caller.onComplete?.(trailers);
  }

  onError(error: Error): void {
    if (this.attempt.exchange.fails(this.attempt, error)) this.caller.onError?.(error);
  }
}

/** What a caller of undici 7 steers a whole exchange with, whichever attempt is under way. */
export class ExchangeController implements DispatchController {
  #exchange: Exchange | undefined;
  #attempt: DispatchController | undefined;

  /** From now on it steers this attempt. */
  steer(exchange: Exchange, attempt: DispatchController): void {
    this.#exchange = exchange;
    this.#attempt = attempt;
  }

  get aborted(): boolean {
    return (this.#exchange?.aborted ?? false) || (this.#attempt?.aborted ?? false);
  }

  get reason(): Error | null {
    return this.#exchange?.reason ?? this.#attempt?.reason ?? null;
  }

  get paused(): boolean {
    return this.#attempt?.paused ?? false;
  }

  get rawHeaders(): unknown {
    return this.#attempt?.rawHeaders;
  }

  get rawTrailers(): unknown {
    return this.#attempt?.rawTrailers;
  }

  abort(reason: Error): void {
    this.#exchange?.abort(reason);
  }

  pause(): void {
    this.#attempt?.pause();
  }

  resume(): void {
    this.#attempt?.resume();
  }
}

/** Tells a caller of one attempt in the words of undici 7, as far as it is to be told. */
export class ControlledAttempt implements ControlledHandler {
  constructor(
    private readonly attempt: Attempt,
    private readonly controller: ExchangeController,
    private readonly caller: ControlledHandler,
  ) {}

  onRequestStart(controller: DispatchController, context: unknown): void {
    this.controller.steer(this.attempt.exchange, controller);
    // It does without a reason, whatever its type says: undici's own handlers count on it.
    if (this.attempt.begin((reason) => controller.abort(reason as Error))) this.caller.onRequestStart?.(this.controller, context);
  }

  onResponseStarted(): void {
    if (this.attempt.wanted) this.caller.onResponseStarted?.();
  }

  onRequestUpgrade(_controller: DispatchController, status: number, headers: unknown, socket: Duplex): void {
    if (this.attempt.exchange.upgrades(this.attempt)) this.caller.onRequestUpgrade?.(this.controller, status, headers, socket);
    else socket.destroy();
  }

  onResponseStart(_controller: DispatchController, status: number, headers: unknown, statusText?: string): void {
    if (this.attempt.exchange.passes(this.attempt, status)) this.caller.onResponseStart?.(this.controller, status, headers, statusText);
    else this.attempt.cancel();
  }

  onResponseData(_controller: DispatchController, chunk: Buffer): void {
    if (this.attempt.wanted) this.caller.onResponseData?.(this.controller, chunk);
  }

  onResponseEnd(_controller: DispatchController, trailers: unknown): void {
    if (!this.attempt.wanted) return;
    this.attempt.exchange.ended();
    this.caller.onResponseEnd?.(this.controller, trailers);
  }

  onResponseError(_controller: DispatchController, error: Error): void {
    if (this.attempt.exchange.fails(this.attempt, error)) this.caller.onResponseError?.(this.controller, error);
  }
}
