import { AcquireTimeoutError, ConfigError, explain, StoreUnusableError } from '../errors.js';
import { type LeaseEvent, LeaseLostError, type LossReason } from '../lease/lease.js';

/** What the thread is started with; everything in it can be cloned. */
export interface WorkerSettings {
  readonly storeUrl: string;
  readonly endpoint: string | undefined;
  readonly region: string | undefined;
  readonly taskId: string;
  readonly nodes: number | undefined;
  readonly durationMs: number | undefined;
  readonly graceMs: number | undefined;
  readonly acquireTimeoutMs: number | undefined;
  readonly requestTimeoutMs: number;
  /** Whether the thread ends the process when the main thread does not act on a loss in time. */
  readonly killOnLoss: boolean;
  /** One signed 64-bit integer: the deadline in microseconds on the monotonic clock, 0 once the lease is not held any more. */
  readonly deadline: SharedArrayBuffer;
}

/** From the main thread to the keeper's. */
export type ToWorker =
  | { readonly type: 'abort' }
  | { readonly type: 'known-nodes'; readonly versions: Readonly<Record<number, number>> }
  | { readonly type: 'release' };

/** From the keeper's thread to the main one. */
export type FromWorker =
  | { readonly type: 'acquired'; readonly id: number; readonly version: number }
  | { readonly type: 'failed'; readonly error: WireError }
  | { readonly type: 'event'; readonly event: WireEvent }
  | { readonly type: 'lost'; readonly error: WireError }
  | { readonly type: 'released' };

/** An error's facts: a structured clone would keep neither its class nor its fields. */
export type WireError =
  | { readonly kind: 'config'; readonly setting: string; readonly value: unknown; readonly expected: string }
  | { readonly kind: 'store-unusable' | 'acquire-timeout' | 'other'; readonly message: string }
  | {
      readonly kind: 'lost';
      readonly nodeId: number;
      readonly version: number;
      readonly reason: LossReason;
      readonly deadline: number;
      readonly detail: string;
    };

export function toWire(error: unknown): WireError {
  if (error instanceof ConfigError) return { kind: 'config', setting: error.setting, value: error.value, expected: error.expected };
  if (error instanceof LeaseLostError) {
    const { nodeId, version, reason, deadline, detail } = error;
    return { kind: 'lost', nodeId, version, reason, deadline, detail };
  }
  const message = explain(error);
  if (error instanceof StoreUnusableError) return { kind: 'store-unusable', message };
  return { kind: error instanceof AcquireTimeoutError ? 'acquire-timeout' : 'other', message };
}

export function fromWire(wire: WireError): Error {
  switch (wire.kind) {
    case 'config':
      return new ConfigError(wire.setting, wire.value, wire.expected);
    case 'lost':
      return new LeaseLostError(wire.nodeId, wire.version, wire.reason, wire.deadline, wire.detail);
    case 'store-unusable':
      return new StoreUnusableError(wire.message);
    case 'acquire-timeout':
      return new AcquireTimeoutError(wire.message);
    case 'other':
      return new Error(wire.message);
  }
}

/** An event that crosses as it is; `lost` has a message of its own. */
export type WireEvent = Exclude<LeaseEvent, { type: 'lost' }>;

/** The event, with the text only of an error in it. */
export function cloneable(event: WireEvent): WireEvent {
  return 'error' in event ? { ...event, error: new Error(explain(event.error)) } : event;
}
