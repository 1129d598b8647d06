import type { Clock, RandomSource } from '../../core/base/clock.js';
import { NodeLeaseError } from '../../core/base/errors.js';
import type { ConnectedState, SessionState } from './session-state.js';

/** The default of a call's `timeoutMs`. */
export const CALL_TIMEOUT_MS = 5_000;

/** Options of every call. */
export interface CallOptions {
  /**
   * How long the call may take, in milliseconds, the wait for a connection included.
   * @default the client's `operationTimeoutMs`
   */
  readonly timeoutMs?: number | undefined;
  /** Gives the call up at once. A request that was sent already may still be applied. */
  readonly signal?: AbortSignal | undefined;
  /**
   * The id of the session that the call is for. In any other session it is not sent, and fails as
   * `session-expired`: an ephemeral znode that was meant for an earlier session must not be made in a later
   * one. @default any session
   */
  readonly sessionId?: string | undefined;
  /**
   * Whether to give up the connection too when the call was sent and no answer comes in time: the client
   * keeps its session, and tries the next server at once. Other calls under way then fail as
   * `connection-loss`. The client itself finds out within two thirds of the session's time-out that a server
   * does not respond. @default false
   */
  readonly reconnectOnTimeout?: boolean | undefined;
}

/**
 * What happens to a znode when the session that made it ends, whether the server numbers it, and its owner. A
 * `shared` one is persistent and belongs to all users. The others belong to the user that makes them, if
 * there is one.
 */
export type CreateMode =
  | 'shared'
  | 'persistent'
  | 'ephemeral'
  | 'persistent-sequential'
  | 'ephemeral-sequential';

/**
 * What the server knows of a znode in addition to its data. Times are in milliseconds since the Unix epoch
 * by the leader's clock.
 */
export interface ZnodeStat {
  /** The number of changes of the data, for conditional writes. */
  readonly version: number;
  /** The number of changes of the children. */
  readonly childrenVersion: number;
  /** The transaction that made it: greater for a later one, on the whole ensemble. */
  readonly createdZxid: bigint;
  /** The transaction that last changed its data. */
  readonly modifiedZxid: bigint;
  /** When it was made. For people only. */
  readonly createdAt: number;
  /** When its data was last changed: after a write, this shows the leader's time. */
  readonly modifiedAt: number;
  /**
   * The session that an ephemeral znode goes with, as in {@link SessionState}; undefined for a persistent
   * one.
   */
  readonly owner: string | undefined;
  readonly childCount: number;
}

/**
 * How much data the servers take in one request, in bytes (`jute.maxbuffer`, less room for the rest of the
 * request).
 */
export const LARGEST_DATA = 1_000_000;

/** Data to be written; a text as UTF-8. */
export type ZnodeData = string | Uint8Array;

/** A znode's data and facts. */
export interface Znode {
  readonly data: Buffer;
  readonly stat: ZnodeStat;
}

/** A znode that was just made. */
export interface CreatedZnode {
  /** Differs from the requested path if the servers have numbered it. */
  readonly path: string;
  /** As {@link ZnodeStat.createdZxid}; undefined if the servers did not report it, and it must be read. */
  readonly createdZxid: bigint | undefined;
}

/** One operation of a transaction. */
export type MultiOperation =
  | { readonly type: 'create'; readonly path: string; readonly data: ZnodeData; readonly mode: CreateMode }
  | { readonly type: 'set'; readonly path: string; readonly data: ZnodeData; readonly version?: number }
  | { readonly type: 'remove'; readonly path: string; readonly version?: number }
  | { readonly type: 'check'; readonly path: string; readonly version?: number };

/** Receives the names of a znode's children, undefined while it is absent, and its path. Must not throw. */
export type ChildrenListener = (children: readonly string[] | undefined, path: string) => void;

/** Receives a znode, undefined while it is absent, and its path. Must not throw. */
export type ZnodeListener = (znode: Znode | undefined, path: string) => void;

/** A standing watch. */
export interface Watch {
  /**
   * Resolves once the listener has been called for the first time. Never rejects, and never resolves when the
   * watch is closed before.
   */
  readonly first: Promise<void>;
  /** Ends it: the listener is not called again. */
  close(): void;
}

/**
 * The size of a transaction in bytes.
 * @param perOperation what the servers count for an operation in addition to its path and its data
 */
export function bytesOf(operations: readonly MultiOperation[], perOperation: number): number {
  const sizes = operations.map(
    (each) => Buffer.byteLength(each.path) + ('data' in each ? Buffer.byteLength(each.data) : 0),
  );
  return sizes.reduce((sum, size) => sum + perOperation + size, 0);
}

/** A standing watch that reads what it reports. */
export interface ReadingWatch extends Watch {
  /**
   * Whether the servers have refused the last read, for lack of permission for instance. It is repeated, with
   * pauses of up to 5 seconds.
   */
  readonly isRefused: boolean;
}

/** What is needed to read znodes. */
export type ZnodeReader = Pick<ZooKeeper, 'read' | 'children'>;

/**
 * A ZooKeeper service: sessions are opened again by themselves, every call has a deadline, watches stay.
 *
 * Paths are absolute within the chroot: `/discovery/nodes`. Every call rejects with a {@link ZooKeeperError};
 * an expected outcome, such as an absent znode, is a value.
 */
export interface ZooKeeper {
  /** The servers and the chroot, for people. */
  readonly description: string;

  /** The session as of now. */
  readonly state: SessionState;

  /**
   * When the last request over the current connection was sent whose answer had arrived by `at`; minus
   * infinity without one. The request to connect counts as answered before any time. Both on the monotonic
   * clock, in milliseconds. It shows until when the servers keep the session.
   */
  heardBy(at: number): number;

  /**
   * Calls `listener` with every new state, in order, until the returned function is called. Not with the
   * present one. Listeners must not throw.
   */
  onState(listener: (state: SessionState) => void): () => void;

  /**
   * Resolves to the state `connected`, at once if it is the current one. @throws {ZooKeeperError} `timeout`
   * when there is no session within `timeoutMs`, with the last problem as its cause; `closed` after `close()`
   */
  whenConnected(options?: Omit<CallOptions, 'sessionId'>): Promise<ConnectedState>;

  /**
   * Makes a znode; its parent must exist. Resolves to its path, which differs from `path` for the sequential
   * modes.
   *
   * @throws {ZooKeeperError} among others `node-exists`, `no-node` (no parent)
   */
  create(path: string, data: ZnodeData, mode: CreateMode, options?: CallOptions): Promise<string>;

  /** As {@link create}, with the transaction that made it. Takes servers of version 3.5 or later. */
  createWithZxid(
    path: string,
    data: ZnodeData,
    mode: CreateMode,
    options?: CallOptions,
  ): Promise<CreatedZnode>;

  /**
   * As {@link create}, and makes the parents that are missing, shared ones, again where one vanishes in
   * between (Curator's are containers, which the server removes when empty).
   */
  createWithParents(path: string, data: ZnodeData, mode: CreateMode, options?: CallOptions): Promise<string>;

  /** Makes a shared znode without data, and its parents, unless they exist. The chroot is made with them. */
  ensurePath(path: string, options?: CallOptions): Promise<void>;

  /** Undefined for an absent znode. */
  read(path: string, options?: CallOptions): Promise<Znode | undefined>;

  /** The names of the children, in no particular order; undefined for an absent znode. */
  children(path: string, options?: CallOptions): Promise<readonly string[] | undefined>;

  /**
   * Replaces a znode's data; with `version`, only where that is its version.
   * @throws {ZooKeeperError} as `no-node`, `bad-version`
   */
  setData(path: string, data: ZnodeData, version?: number, options?: CallOptions): Promise<ZnodeStat>;

  /**
   * Removes a znode; with `version`, only where that is its data's version. Resolves to false when there was
   * none.
   *
   * @throws {ZooKeeperError} among others `bad-version`, `not-empty`
   */
  remove(path: string, version?: number, options?: CallOptions): Promise<boolean>;

  /**
   * Carries out all of the operations, or none.
   * @throws {ZooKeeperError} that of the first operation that is refused
   */
  multi(operations: readonly MultiOperation[], options?: CallOptions): Promise<void>;

  /**
   * Calls `listener` with the names of a znode's children, undefined while it is absent, and with its path:
   * now, and after every change, until the watch is closed. Changes in quick succession may come as one, but
   * the last call always has the newest state, across lost connections and sessions too. While there is no
   * connection there is no call. Listeners must not throw.
   *
   * @param onRefused called with the path when the servers refuse to read again what has been reported. The
   * next state is reported even if it is the same one.
   */
  watchChildren(path: string, listener: ChildrenListener, onRefused?: (path: string) => void): ReadingWatch;

  /** The same for a znode's data. */
  watchData(path: string, listener: ZnodeListener, onRefused?: (path: string) => void): ReadingWatch;

  /**
   * Calls `listener` when a znode is removed, or where there is none: for paths that are not used again, such
   * as sequential ones. Takes no read after the removal, so it reports sooner than {@link watchData}, also
   * where the znode is replaced.
   */
  watchRemoval(path: string, listener: () => void): Watch;

  /**
   * Ends the session with its ephemeral znodes, and every watch. Resolves soon also where no server answers,
   * and never rejects. Idempotent.
   */
  close(): Promise<void>;
}

/** Why a call failed. */
export type ZooKeeperFault =
  /** The znode, or the parent of one that was to be made, does not exist. */
  | 'no-node'
  | 'node-exists'
  /** The data has another version than the expected one. */
  | 'bad-version'
  | 'not-empty'
  /** The parent is ephemeral. */
  | 'no-children-for-ephemerals'
  /** The access control list does not allow it to this session. */
  | 'no-auth'
  /**
   * The servers refuse the credentials themselves, or the session for want of them. They never do so for a
   * digest that is wrong, which shows as `no-auth`.
   */
  | 'auth-failed'
  /** The connection broke while the call was under way. */
  | 'connection-loss'
  /** The session that the call was for, or was sent in, has ended. */
  | 'session-expired'
  /** No answer, or no connection, in time. */
  | 'timeout'
  /** Other clients repeatedly changed what the call reads or writes. */
  | 'contended'
  /** The call needs current data, and only an older copy of it is at hand. */
  | 'stale'
  /** Java programs could not read a service with an instance that was to be registered. */
  | 'mixed-payloads'
  /** The caller's signal gave it up. */
  | 'aborted'
  /** The client has been closed. */
  | 'closed'
  /** Anything else that a server answers, by its code in the message. */
  | 'refused';

/** After these the same call may well succeed a little later. */
export const TRANSIENT = ['connection-loss', 'timeout', 'session-expired', 'contended'] as const;
/** Another client has changed what the call was for. */
export const OVERTAKEN = ['bad-version', 'node-exists', 'no-node', 'not-empty'] as const;

/** A call of ZooKeeper that failed. */
export class ZooKeeperError extends NodeLeaseError {
  readonly code = 'ZOOKEEPER_FAILED';

  constructor(
    message: string,
    readonly fault: ZooKeeperFault,
    /** Whether a write may have been carried out all the same. */
    readonly outcome: 'unknown' | 'not-applied',
    /** The path that the call was about, within the chroot; undefined for calls about none. */
    readonly path?: string,
    cause?: unknown,
  ) {
    super(message, { cause });
  }

  /** Whether the same call may well succeed a little later. */
  get transient(): boolean {
    return isFault(this, ...TRANSIENT);
  }
}

/** Whether an error is a {@link ZooKeeperError} of one of these faults. */
export function isFault(error: unknown, ...faults: readonly ZooKeeperFault[]): error is ZooKeeperError {
  return error instanceof ZooKeeperError && faults.includes(error.fault);
}

/** Whether a write that failed with this error may have been carried out all the same. */
export const isUnknown = (error: unknown): error is ZooKeeperError =>
  error instanceof ZooKeeperError && error.outcome === 'unknown';

/** Whether it certainly has not. */
export const isNotApplied = (error: unknown): error is ZooKeeperError =>
  error instanceof ZooKeeperError && error.outcome === 'not-applied';

/** Takes these faults for a success, for `catch`: there is nothing left to do. */
export const ignoring =
  (...faults: readonly ZooKeeperFault[]) =>
  (error: unknown): undefined => {
    if (!isFault(error, ...faults)) throw error;
  };

/** The failure of what has been closed. @param what the beginning of the sentence "… has been closed" */
export const closedError = (what: string, outcome: ZooKeeperError['outcome'] = 'not-applied') =>
  new ZooKeeperError(`${what} has been closed`, 'closed', outcome);

/** Why one request failed, before it is known which call it was made for. */
export class RequestFailure extends Error {
  /**
   * @param mayBeApplied whether a write may have been carried out all the same
   * @param index which operation of a transaction it was, from 0
   */
  constructor(
    readonly fault: ZooKeeperFault,
    readonly mayBeApplied: boolean,
    detail: string,
    readonly index?: number,
  ) {
    super(detail);
    this.name = 'RequestFailure';
  }
}

/** Where time and random numbers come from. */
export interface TimeSources {
  readonly clock: Clock;
  readonly random: RandomSource;
}

/** The same as options. */
export interface TimeOptions {
  /** @default the clock of this machine */
  readonly clock?: Clock | undefined;
  /** @default the operating system's */
  readonly random?: RandomSource | undefined;
}

/** What is notified of events. */
export interface EventOptions<E> {
  /** Receives each event. Must not throw and must not block. @default events are not reported */
  readonly onEvent?: ((event: E) => void) | undefined;
}

/** What all that works on znodes is given. */
export interface ZooKeeperContext extends TimeSources {
  readonly zookeeper: ZooKeeper;
}
