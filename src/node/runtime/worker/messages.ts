import { AcquireTimeoutError, ConfigError, explain, StoreUnusableError } from '../../../core/base/errors.js';
import type { AcquireLeaseOptions } from '../../../core/lease/acquire/acquire-lease.js';
import {
  type Lease,
  type LeaseEvent,
  LeaseLostError,
  LeaseReleasedError,
} from '../../../core/lease/model/lease.js';
import { LeaseUnreadableError } from '../../../core/lease/model/lease-codec.js';
import type { LeaseMark } from '../../../core/lease/model/lease-state.js';
import { StoreError } from '../../../core/store/lease-store.js';
import type { StoreOptions } from '../opened-store.js';

/** Options that cannot be cloned. */
type OfOneThread = 'store' | 'clock' | 'random' | 'signal' | 'onEvent' | 'tracer';

type CloneableOptions = Omit<AcquireLeaseOptions, OfOneThread>;

/** Of options that have more, those for the thread. An option that is forgotten here does not compile. */
export function forThread(options: CloneableOptions): Required<CloneableOptions> {
  const { taskId, cluster, clusterName, nodes, durationMs, graceMs, probed, acquireTimeoutMs } = options;
  const { epoch, waitPollMs, settingsIntervalMs, sticky, preferId, stickyWaitMs } = options;
  return {
    taskId,
    cluster,
    clusterName,
    nodes,
    durationMs,
    graceMs,
    probed,
    epoch,
    acquireTimeoutMs,
    waitPollMs,
    settingsIntervalMs,
    sticky,
    preferId,
    stickyWaitMs,
  };
}

/** The start options of the thread, which can all be cloned. */
export interface WorkerSettings extends CloneableOptions, StoreOptions {
  /** Its URL. */
  readonly store: string;
  /** Whether the thread ends the process when the main thread does not act on a loss in time. */
  readonly killOnLoss: boolean;
  /** See `SharedTenure`. */
  readonly tenure: SharedArrayBuffer;
}

/** From the main thread to the keeper's. */
export type ToWorker =
  | { readonly type: 'abort' }
  | { readonly type: 'known-nodes'; readonly versions: Readonly<Record<number, number>> }
  /** Answered by `marked` with its number. */
  | { readonly type: 'mark'; readonly mark: LeaseMark; readonly number: number }
  /** Unique ids are to be made; answered by `prepared`. */
  | { readonly type: 'prepare' }
  /** No further id has fewer bits for the node id than that. */
  | { readonly type: 'adopted'; readonly idWidth: number }
  /** Where work has not ended, the lease is left to expire. */
  | { readonly type: 'release'; readonly workEnded: boolean };

/** From the keeper's thread to the main one. */
export type FromWorker =
  | ({ readonly type: 'acquired'; readonly idWidth: number } & Pick<Lease, 'id' | 'version' | 'previous'>)
  | { readonly type: 'failed'; readonly error: WireError }
  | { readonly type: 'event'; readonly event: WireEvent }
  /** With the reason if the preparation failed. */
  | { readonly type: 'prepared'; readonly error?: WireError }
  /** The number of bits that ids must have for the node id; answered by `adopted`. */
  | { readonly type: 'width'; readonly idWidth: number }
  /** The lease shows the mark of this number. */
  | { readonly type: 'marked'; readonly number: number }
  | { readonly type: 'lost'; readonly error: WireError }
  | { readonly type: 'released' };

/** An error's facts: a structured clone would keep neither its class nor its fields. */
export interface WireError {
  /** Its class, by the index in {@link CLASSES}. */
  readonly kind: number;
  /** With the texts of its causes. */
  readonly message: string;
  readonly fields: Readonly<Record<string, unknown>>;
  /** Its cause, if it has one of those classes: it shows whether the store may come back. */
  readonly cause?: WireError;
}

/** The classes that are sent with their fields. Of any other error only the text is sent. */
const CLASSES: readonly (new (...args: never[]) => Error)[] = [
  ConfigError,
  StoreError,
  StoreUnusableError,
  AcquireTimeoutError,
  LeaseLostError,
  LeaseReleasedError,
  LeaseUnreadableError,
];

function kindOf(error: unknown): number {
  return CLASSES.findIndex((type) => error instanceof type);
}

/** The parts of an error that can be sent to another thread. */
export function toWire(error: unknown): WireError {
  const kind = kindOf(error);
  return {
    kind,
    message: explain(error),
    fields: kind < 0 ? {} : { ...(error as Error) },
    ...(error instanceof Error && kindOf(error.cause) >= 0 && { cause: toWire(error.cause) }),
  };
}

/** The error that {@link toWire} was given, of the same class with the same fields. */
export function fromWire({ kind, message, fields, cause }: WireError): Error {
  const error = new Error(message, cause && { cause: fromWire(cause) });
  return Object.setPrototypeOf(Object.assign(error, fields), (CLASSES[kind] ?? Error).prototype);
}

/** An event that is sent unchanged; `lost` has its own message. */
type WireEvent = Exclude<LeaseEvent, { type: 'lost' }>;

/** The event, with only the text of an error in it. */
export function cloneable(event: WireEvent): WireEvent {
  return 'error' in event ? { ...event, error: new Error(explain(event.error)) } : event;
}
