import type { Duplex } from 'node:stream';

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
