import { AcquireTimeoutError, ConfigError, explain, StoreUnusableError } from '../errors.js';
import { type LeaseEvent, LeaseLostError, LeaseReleasedError, type LossReason } from '../lease/lease.js';
import { LeaseUnreadableError } from '../lease/lease-codec.js';
import { StoreError, type StoreFault } from '../store/lease-store.js';

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
  readonly waitPollMs?: number | undefined;
  readonly settingsIntervalMs?: number | undefined;
  readonly requestTimeoutMs: number;
  /** Whether the thread ends the process when the main thread does not act on a loss in time. */
  readonly killOnLoss: boolean;
  /** See `SharedTenure`. */
  readonly tenure: SharedArrayBuffer;
}

/** From the main thread to the keeper's. */
export type ToWorker =
  | { readonly type: 'abort' }
  | { readonly type: 'known-nodes'; readonly versions: Readonly<Record<number, number>> }
  /** Unique ids are to be made; answered by `prepared` or `unprepared`. */
  | { readonly type: 'prepare' }
  /** No id will be made with fewer bits for the node id than that. */
  | { readonly type: 'adopted'; readonly idWidth: number }
  | { readonly type: 'release' };

/** From the keeper's thread to the main one. */
export type FromWorker =
  | { readonly type: 'acquired'; readonly id: number; readonly version: number; readonly idWidth: number }
  | { readonly type: 'failed'; readonly error: WireError }
  | { readonly type: 'event'; readonly event: WireEvent }
  | { readonly type: 'prepared'; readonly idWidth: number }
  | { readonly type: 'unprepared'; readonly error: WireError }
  /** Ids are to have so many bits for the node id; answered by `adopted`. */
  | { readonly type: 'width'; readonly idWidth: number }
  | { readonly type: 'lost'; readonly error: WireError }
  | { readonly type: 'released' };

/** An error's facts: a structured clone would keep neither its class nor its fields. */
export type WireError =
  | { readonly kind: 'config'; readonly setting: string; readonly value: unknown; readonly expected: string }
  | { readonly kind: 'store-unusable' | 'acquire-timeout' | 'other'; readonly message: string }
  | { readonly kind: 'store'; readonly message: string; readonly fault: StoreFault; readonly outcome: StoreError['outcome'] }
  | { readonly kind: 'unreadable'; readonly problem: string }
  | { readonly kind: 'released'; readonly nodeId: number; readonly version: number }
  | {
      readonly kind: 'lost';
      readonly nodeId: number;
      readonly version: number;
      readonly reason: LossReason;
      readonly deadline: number;
      readonly detail: string;
    };

/** What of an error can cross to another thread; its causes become part of its text. */
export function toWire(error: unknown): WireError {
  if (error instanceof ConfigError) return { kind: 'config', setting: error.setting, value: error.value, expected: error.expected };
  if (error instanceof LeaseLostError) {
    const { nodeId, version, reason, deadline, detail } = error;
    return { kind: 'lost', nodeId, version, reason, deadline, detail };
  }
  if (error instanceof LeaseReleasedError) return { kind: 'released', nodeId: error.nodeId, version: error.version };
  if (error instanceof LeaseUnreadableError) return { kind: 'unreadable', problem: error.problem };
  const message = explain(error);
  if (error instanceof StoreError) return { kind: 'store', message, fault: error.fault, outcome: error.outcome };
  if (error instanceof StoreUnusableError) return { kind: 'store-unusable', message };
  return { kind: error instanceof AcquireTimeoutError ? 'acquire-timeout' : 'other', message };
}

/** The error that {@link toWire} was given, of the same class with the same fields. */
export function fromWire(wire: WireError): Error {
  switch (wire.kind) {
    case 'config':
      return new ConfigError(wire.setting, wire.value, wire.expected);
    case 'lost':
      return new LeaseLostError(wire.nodeId, wire.version, wire.reason, wire.deadline, wire.detail);
    case 'released':
      return new LeaseReleasedError(wire.nodeId, wire.version);
    case 'unreadable':
      return new LeaseUnreadableError(wire.problem);
    case 'store':
      return new StoreError(wire.message, { fault: wire.fault, outcome: wire.outcome });
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
