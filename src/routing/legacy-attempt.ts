import type { Duplex } from 'node:stream';
import type { LegacyHandler } from './dispatch.js';
import type { Attempt } from './exchange.js';

/** Tells a caller of one attempt in the words of undici 6, as far as it is to be told. */
export class LegacyAttempt implements LegacyHandler {
  readonly #attempt: Attempt;
  readonly #caller: LegacyHandler;

  constructor(attempt: Attempt, caller: LegacyHandler) {
    this.#attempt = attempt;
    this.#caller = caller;
  }

  onConnect(abort: (reason?: Error) => void, context?: unknown): void {
    const { exchange } = this.#attempt;
    if (!this.#attempt.begin(abort) || !exchange.announces()) return;
    this.#caller.onConnect?.((reason) => exchange.abort(reason), context);
  }

  onBodySent(chunkSize: number, totalBytesSent: number): void {
    if (this.#wanted) this.#caller.onBodySent?.(chunkSize, totalBytesSent);
  }

  onRequestSent(): void {
    if (this.#wanted) this.#caller.onRequestSent?.();
  }

  onResponseStarted(): void {
    if (this.#wanted) this.#caller.onResponseStarted?.();
  }

  onUpgrade(status: number, headers: unknown, socket: Duplex): void {
    if (this.#attempt.exchange.upgrades(this.#attempt)) this.#caller.onUpgrade?.(status, headers, socket);
    else socket.destroy();
  }

  onHeaders(status: number, headers: unknown, resume: () => void, statusText: string): boolean {
    if (this.#attempt.exchange.passes(this.#attempt, status)) return this.#caller.onHeaders?.(status, headers, resume, statusText) ?? true;
    this.#attempt.cancel();
    return false;
  }

  onData(chunk: Buffer): boolean {
    return this.#wanted ? (this.#caller.onData?.(chunk) ?? true) : true;
  }

  onComplete(trailers: unknown): void {
    if (!this.#wanted) return;
    this.#attempt.exchange.ended();
    this.#caller.onComplete?.(trailers);
  }

  onError(error: Error): void {
    if (this.#attempt.exchange.fails(this.#attempt, error)) this.#caller.onError?.(error);
  }

  /** There are dispatchers that go on with an attempt after it was cancelled, such as undici's `MockAgent`. */
  get #wanted(): boolean {
    return this.#attempt.exchange.wants(this.#attempt);
  }
}
