import { NodeLeaseError } from '../../base/errors.js';
import { notify } from '../../base/listeners.js';
import type { LeaseHome } from '../hold/lease-home.js';
import type { TenureTime } from '../hold/tenure-time.js';
import type { PreviousHolder } from './lease-state.js';

/**
 * A node id that this process holds. Dispose of it (`await using`) or call `release()` when the work has
 * ended; stop the work when `signal` aborts.
 */
export interface Lease extends AsyncDisposable {
  /** The node id, 0 … size - 1. */
  readonly id: number;

  /**
   * The fencing token: greater at every new tenure of this id, never used twice. Send it along with every
   * write it should protect.
   */
  readonly version: number;

  /** Names this run of this process. */
  readonly taskId: string;

  /**
   * Whether the last holder of this id had the same sticky key; `none` if there was no holder. Undefined for
   * a static id and an id from ZooKeeper.
   */
  readonly previous?: PreviousHolder | undefined;

  /**
   * Aborts with a {@link LeaseLostError} once the lease is lost, and not on `release()`.
   * It needs a running event loop. Before an operation that must not happen twice, call `isValid()`.
   */
  readonly signal: AbortSignal;

  /**
   * Aborts with a {@link LeaseRetiringError} once the cluster has shrunk and retires this node id: end the
   * work and `release()`. The lease is renewed until then, or until the drain timeout of `scale` is over and
   * the id is taken away. The holder learns of it at a renewal, and the signal stays aborted even if the
   * cluster grows again. A static id and an id from ZooKeeper are never retired.
   */
  readonly retiring: AbortSignal;

  /**
   * When the tenure ends unless it is renewed, in milliseconds on the engine's monotonic clock
   * (`systemClock.monotonic()`); infinity for a static id.
   */
  readonly deadline: number;

  /**
   * True while this process can prove that it holds the id. Compares clocks when asked, so it is right even
   * after a pause.
   */
  isValid(): boolean;

  /** The id time window of unique ids, see `uniqueIds`; undefined for a static id, which has no tenure. */
  readonly tenureTime: TenureTime | undefined;

  /**
   * Where work that relies on the lease is attached: it ends before the lease is given back. Undefined for a
   * static id and an id from ZooKeeper.
   */
  readonly home: LeaseHome | undefined;

  /** Sets the versions of other nodes that this node knows. The next renewal writes them. */
  setKnownNodes(versions: Readonly<Record<number, number>>): void;

  /**
   * Releases the id by a tombstone that keeps the version. Call it when the work has ended, not before. It
   * does not throw when the store fails: the lease is then left to expire, as where the end of that work has
   * failed. Later calls share the result of the first one.
   */
  release(): Promise<void>;
}

/** Why a tenure ended against its holder's will. */
export type LossReason =
  /** The store could not be reached in time; no other task can have the id before `deadline`. */
  | 'unreachable'
  /**
   * The store refused access until it was too late: credentials have expired, or a right is missing. No other
   * task can have the id before `deadline`.
   */
  | 'denied'
  /** The lease object now names another task, or no longer names us. Another task may already be at work. */
  | 'taken'
  /** The process was paused past its deadline. Another task may already be at work. */
  | 'paused';

/**
 * Whether work may continue until the error's deadline: no other task can hold the id before. Otherwise
 * another task may hold it already.
 */
export function leavesTime(reason: LossReason): boolean {
  return reason === 'unreachable' || reason === 'denied';
}

/** A tenure has ended against its holder's will: all work that relies on it must stop. */
export abstract class TenureLostError extends NodeLeaseError {
  constructor(
    what: string,
    readonly reason: LossReason,
    /**
     * By when all work must have ended, in milliseconds on the monotonic clock; the moment of loss unless
     * `reason` is `unreachable` or `denied`.
     */
    readonly deadline: number,
    /** What happened, as the rest of the sentence "… is lost: …". */
    readonly detail: string,
    cause?: unknown,
  ) {
    super(`${what} is lost: ${detail}`, { cause });
  }
}

/** The lease is lost: all work that relies on the node id must stop. */
export class LeaseLostError extends TenureLostError {
  readonly code = 'LEASE_LOST';

  constructor(
    readonly nodeId: number,
    readonly version: number,
    reason: LossReason,
    deadline: number,
    detail: string,
    cause?: unknown,
  ) {
    super(`lease of node id ${nodeId} (version ${version})`, reason, deadline, detail, cause);
  }
}

/** This process has released the lease: another task may hold its node id. */
export class LeaseReleasedError extends NodeLeaseError {
  readonly code = 'LEASE_RELEASED';

  constructor(
    readonly nodeId: number,
    readonly version: number,
  ) {
    super(`lease of node id ${nodeId} (version ${version}) has been released`);
  }
}

/**
 * The cluster has shrunk, and retires this node id: its holder is asked to end. This is no failure; the lease
 * is still valid.
 */
export class LeaseRetiringError extends NodeLeaseError {
  readonly code = 'LEASE_RETIRING';

  constructor(
    readonly nodeId: number,
    readonly version: number,
    /** How many node ids the cluster has now. */
    readonly size: number,
  ) {
    super(
      `node id ${nodeId} (version ${version}) is being retired: the cluster has ${size} node ${size === 1 ? 'id' : 'ids'} now`,
    );
  }
}

/** What happens to a lease, for logs, metrics and watchdogs. Listeners must not throw and must not block. */
export type LeaseEvent =
  /** This task's own settings differ from those in `cluster.json`, which win. */
  | {
      readonly type: 'setting-overruled';
      readonly setting: string;
      readonly own: number;
      readonly stored: number;
    }
  /**
   * The store had no cluster, and this task has created one. Tasks that should share it may use a different
   * URL.
   */
  | { readonly type: 'cluster-created'; readonly size: number; readonly store: string }
  /**
   * No task has tested yet whether the store keeps its conditions: this one does, once for all tasks. It takes
   * hundreds of requests.
   */
  | { readonly type: 'testing-store'; readonly store: string }
  /** An object that cannot be used: absent after bootstrap, or unreadable. Reported once each. */
  | { readonly type: 'damaged'; readonly key: string; readonly problem: string }
  /** No id is free, or a free id may not be taken yet; `why` is the reason. The next scan is in `sleepMs`. */
  | { readonly type: 'waiting'; readonly sleepMs: number; readonly why?: string }
  /** The store failed while acquiring; tried again in `sleepMs`. */
  | { readonly type: 'store-failed'; readonly error: unknown; readonly sleepMs: number }
  | {
      readonly type: 'acquired';
      readonly id: number;
      readonly version: number;
      readonly from: 'vacant' | 'released' | 'expired';
      readonly previous?: PreviousHolder | undefined;
      readonly tookMs: number;
      /** Requests made to the store for it. */
      readonly requests: number;
      readonly deadline: number;
      /** The URL of the store; absent where ZooKeeper gives out the node ids. */
      readonly store?: string;
    }
  | { readonly type: 'bootstrapped' }
  /** The cluster has `size` node ids now, and retires this one. Reported once. */
  | { readonly type: 'retiring'; readonly size: number }
  | HolderEvent<LeaseLostError>;

/** Events of a lease or lock while it is held, and at its end. */
export type HolderEvent<E extends TenureLostError> =
  | { readonly type: 'renewed'; readonly deadline: number; readonly tookMs: number }
  | { readonly type: 'renewal-failed'; readonly error: unknown; readonly attempt: number }
  | { readonly type: 'lost'; readonly error: E }
  | { readonly type: 'released' }
  | { readonly type: 'release-failed'; readonly error: unknown };

/** What a task that waits for a node id says. */
export function waitingText({ why }: Extract<LeaseEvent, { type: 'waiting' }>): string {
  return why === undefined ? 'no node id is free: waiting' : `no node id is available yet, waiting: ${why}`;
}

/** Receives {@link LeaseEvent}s in the order in which they happen. */
export type LeaseListener = (event: LeaseEvent) => void;

/**
 * A listener whose failure does not harm the lease: its error becomes an uncaught error outside of the
 * engine.
 */
export function detached(listener: LeaseListener | undefined): LeaseListener {
  return (event) => {
    if (listener) notify(listener, event);
  };
}
