import type { Duplex } from 'node:stream';
import type { ServiceInstance } from '../service-instance.js';
import type { ControlledHandler, DispatchController, LegacyHandler } from './dispatch.js';
import { Attempt, type Exchange } from './exchange.js';

/** Tells a caller of one attempt in the terms of undici 6. */
export class LegacyAttempt extends Attempt implements LegacyHandler {
  constructor(
    exchange: Exchange,
    instance: ServiceInstance,
    private readonly caller: LegacyHandler,
  ) {
    super(exchange, instance);
  }

  onConnect(abort: (reason?: Error) => void, context?: unknown): void {
    if (this.begin(abort)) this.caller.onConnect?.((reason) => this.exchange.abort(reason), context);
  }

  onBodySent(chunkSize: number, totalBytesSent: number): void {
    if (this.wanted) this.caller.onBodySent?.(chunkSize, totalBytesSent);
  }

  onRequestSent(): void {
    if (this.wanted) this.caller.onRequestSent?.();
  }

  onResponseStarted(): void {
    if (this.wanted) this.caller.onResponseStarted?.();
  }

  onUpgrade(status: number, headers: unknown, socket: Duplex): void {
    if (this.exchange.ends(this)) this.caller.onUpgrade?.(status, headers, socket);
    else socket.destroy();
  }

  onHeaders(status: number, headers: unknown, resume: () => void, statusText: string): boolean {
    if (this.exchange.passes(this, status)) return this.caller.onHeaders?.(status, headers, resume, statusText) ?? true;
    this.cancel();
    return false;
  }

  onData(chunk: Buffer): boolean {
    return this.wanted ? (this.caller.onData?.(chunk) ?? true) : true;
  }

  onComplete(trailers: unknown): void {
    if (this.exchange.ends(this)) this.caller.onComplete?.(trailers);
  }

  onError(error: Error): void {
    if (this.exchange.fails(this, error)) this.caller.onError?.(error);
  }
}

/** How a caller of undici 7 controls a whole exchange, whichever attempt is under way. */
export class ExchangeController implements DispatchController {
  exchange: Exchange | undefined;
  /** That of the attempt under way. */
  current: DispatchController | undefined;

  get aborted(): boolean {
    return (this.exchange?.aborted ?? false) || (this.current?.aborted ?? false);
  }

  get reason(): Error | null {
    return this.exchange?.reason ?? this.current?.reason ?? null;
  }

  get paused(): boolean {
    return this.current?.paused ?? false;
  }

  get rawHeaders(): unknown {
    return this.current?.rawHeaders;
  }

  get rawTrailers(): unknown {
    return this.current?.rawTrailers;
  }

  abort(reason: Error): void {
    this.exchange?.abort(reason);
  }

  pause(): void {
    this.current?.pause();
  }

  resume(): void {
    this.current?.resume();
  }
}

/** Tells a caller of one attempt in the terms of undici 7. */
export class ControlledAttempt extends Attempt implements ControlledHandler {
  constructor(
    exchange: Exchange,
    instance: ServiceInstance,
    private readonly controller: ExchangeController,
    private readonly caller: ControlledHandler,
  ) {
    super(exchange, instance);
  }

  onRequestStart(controller: DispatchController, context: unknown): void {
    this.controller.exchange = this.exchange;
    this.controller.current = controller;
    // It does without a reason, whatever its type says: undici's own handlers count on it.
    if (this.begin((reason) => controller.abort(reason as Error))) this.caller.onRequestStart?.(this.controller, context);
  }

  onResponseStarted(): void {
    if (this.wanted) this.caller.onResponseStarted?.();
  }

  onRequestUpgrade(_controller: DispatchController, status: number, headers: unknown, socket: Duplex): void {
    if (this.exchange.ends(this)) this.caller.onRequestUpgrade?.(this.controller, status, headers, socket);
    else socket.destroy();
  }

  onResponseStart(_controller: DispatchController, status: number, headers: unknown, statusText?: string): void {
    if (this.exchange.passes(this, status)) this.caller.onResponseStart?.(this.controller, status, headers, statusText);
    else this.cancel();
  }

  onResponseData(_controller: DispatchController, chunk: Buffer): void {
    if (this.wanted) this.caller.onResponseData?.(this.controller, chunk);
  }

  onResponseEnd(_controller: DispatchController, trailers: unknown): void {
    if (this.exchange.ends(this)) this.caller.onResponseEnd?.(this.controller, trailers);
  }

  onResponseError(_controller: DispatchController, error: Error): void {
    if (this.exchange.fails(this, error)) this.caller.onResponseError?.(this.controller, error);
  }
}
