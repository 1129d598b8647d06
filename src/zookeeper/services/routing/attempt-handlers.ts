import type { Duplex } from 'node:stream';
import type { ServiceInstance } from '../instance/service-instance.js';
import type { ControlledHandler, DispatchController, LegacyHandler } from './dispatch.js';
import { type Exchange, RequestAttempt } from './exchange.js';

/** Reports one attempt to a caller in the terms of undici 6. */
export class LegacyAttempt extends RequestAttempt implements LegacyHandler {
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
    if (this.exchange.passes(this, status))
      return this.caller.onHeaders?.(status, headers, resume, statusText) ?? true;
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

/**
 * How a caller of undici 7 controls a whole exchange: by the controller of the attempt under way, but an
 * abort is that of the exchange.
 */
export class ExchangeController {
  exchange: Exchange | undefined;
  /** That of the attempt under way. */
  current: DispatchController | undefined;
  /** The controller that the caller gets. */
  readonly controller = new Proxy({} as DispatchController, {
    get: (_, name) => {
      const { exchange, current } = this;
      if (name === 'abort') return (reason: Error) => exchange?.abort(reason);
      if (name === 'aborted' && exchange?.aborted) return true;
      if (name === 'reason' && exchange?.reason) return exchange.reason;
      const value: unknown = current && Reflect.get(current, name);
      return typeof value === 'function' ? value.bind(current) : value;
    },
  });
}

/** Reports one attempt to a caller in the terms of undici 7. */
export class ControlledAttempt extends RequestAttempt implements ControlledHandler {
  constructor(
    exchange: Exchange,
    instance: ServiceInstance,
    private readonly steering: ExchangeController,
    private readonly caller: ControlledHandler,
  ) {
    super(exchange, instance);
  }

  onRequestStart(controller: DispatchController, context: unknown): void {
    this.steering.exchange = this.exchange;
    this.steering.current = controller;
    // It does without a reason, whatever its type says: undici's own handlers count on it.
    if (this.begin((reason) => controller.abort(reason as Error)))
      this.caller.onRequestStart?.(this.steering.controller, context);
  }

  onResponseStarted(): void {
    if (this.wanted) this.caller.onResponseStarted?.();
  }

  onRequestUpgrade(_controller: DispatchController, status: number, headers: unknown, socket: Duplex): void {
    if (this.exchange.ends(this))
      this.caller.onRequestUpgrade?.(this.steering.controller, status, headers, socket);
    else socket.destroy();
  }

  onResponseStart(
    _controller: DispatchController,
    status: number,
    headers: unknown,
    statusText?: string,
  ): void {
    if (this.exchange.passes(this, status))
      this.caller.onResponseStart?.(this.steering.controller, status, headers, statusText);
    else this.cancel();
  }

  onResponseData(_controller: DispatchController, chunk: Buffer): void {
    if (this.wanted) this.caller.onResponseData?.(this.steering.controller, chunk);
  }

  onResponseEnd(_controller: DispatchController, trailers: unknown): void {
    if (this.exchange.ends(this)) this.caller.onResponseEnd?.(this.steering.controller, trailers);
  }

  onResponseError(_controller: DispatchController, error: Error): void {
    if (this.exchange.fails(this, error)) this.caller.onResponseError?.(this.steering.controller, error);
  }
}
