import { NodeLeaseError } from '../errors.js';

/** Why a call failed. */
export type ZooKeeperFault =
  /** The znode, or the parent of one that was to be made, does not exist. */
  | 'no-node'
  | 'node-exists'
  /** The data has another version than the one that was asked for. */
  | 'bad-version'
  /** A znode with children cannot be removed. */
  | 'not-empty'
  /** The parent is ephemeral. */
  | 'no-children-for-ephemerals'
  /** The access control list does not allow it to whoever this session has authenticated as. */
  | 'no-auth'
  /** The servers refuse the credentials themselves. They never do so for a digest, where wrong ones show as `no-auth`. */
  | 'auth-failed'
  /** The connection broke while the call was under way. */
  | 'connection-loss'
  /** The session that the call was for, or was sent in, has ended. */
  | 'session-expired'
  /** No answer, or no connection, in time. */
  | 'timeout'
  /** The caller's signal gave it up. */
  | 'aborted'
  /** The client has been closed. */
  | 'closed'
  /** Anything else that a server answers, by its code in the message. */
  | 'refused';

/** A call of ZooKeeper that failed. */
export class ZooKeeperError extends NodeLeaseError {
  readonly code = 'ZOOKEEPER_FAILED';
  readonly fault: ZooKeeperFault;
  /** The path that the call was about, within the chroot; undefined for calls about none. */
  readonly path: string | undefined;
  /** Whether a write may have been carried out all the same. */
  readonly outcome: 'unknown' | 'not-applied';

  constructor(
    message: string,
    options: {
      readonly fault: ZooKeeperFault;
      readonly outcome: 'unknown' | 'not-applied';
      readonly path?: string | undefined;
      readonly cause?: unknown;
    },
  ) {
    super(message, options.cause === undefined ? undefined : { cause: options.cause });
    this.fault = options.fault;
    this.outcome = options.outcome;
    this.path = options.path;
  }

  /** True where the same call may well succeed a little later. */
  get transient(): boolean {
    return this.fault === 'connection-loss' || this.fault === 'timeout' || this.fault === 'session-expired';
  }
}

/** Whether an error is a {@link ZooKeeperError} of one of these faults. */
export function isFault(error: unknown, ...faults: readonly ZooKeeperFault[]): error is ZooKeeperError {
  return error instanceof ZooKeeperError && faults.includes(error.fault);
}
