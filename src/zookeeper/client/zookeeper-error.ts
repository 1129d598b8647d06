import { NodeLeaseError } from '../../core/base/errors.js';

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

/** A server's refusal, by the code of its answer (`KeeperException.Code`). */
export function failureOf(code: number, index?: number): RequestFailure {
  const known = FAILURES[code];
  if (known) return new RequestFailure(known[0], false, known[1], index);
  const why = REASONS[code] ?? `the server refused it for a reason that has no name here (code ${code})`;
  // At -100 or below, the request was judged and refused; above that the server itself failed.
  return new RequestFailure('refused', code > -100, why, index);
}

/**
 * A session that moved to another server while a request was under way: the request was dropped, and so is
 * the connection.
 */
export const SESSION_MOVED = -118;
/** The servers let in authenticated sessions only (`enforce.auth.enabled`). They close the connection after it. */
export const AUTH_REQUIRED = -124;

const FAILURES: Readonly<Record<number, readonly [ZooKeeperFault, string]>> = {
  [-6]: ['refused', 'the server does not implement it'],
  [-8]: ['refused', 'the server calls its arguments invalid'],
  [-101]: ['no-node', 'there is no such znode'],
  [-102]: ['no-auth', 'the access control list does not allow it'],
  [-103]: ['bad-version', 'the data has another version'],
  [-108]: ['no-children-for-ephemerals', 'the parent is ephemeral'],
  [-110]: ['node-exists', 'the znode exists'],
  [-111]: ['not-empty', 'the znode has children'],
  [-112]: ['session-expired', 'the session has expired'],
  [-114]: ['refused', 'the server calls the access control list invalid'],
  [-115]: ['auth-failed', 'the servers refuse the credentials'],
  [SESSION_MOVED]: ['connection-loss', 'the session has moved to another server'],
  [AUTH_REQUIRED]: [
    'auth-failed',
    'the servers want SASL, which nodelease does not speak, or a digest (--zookeeper-auth)',
  ],
};

/** The other codes of `KeeperException.Code`, as a client of ZooKeeper 3.9 has them. */
const REASONS: Readonly<Record<number, string>> = {
  [-1]: 'the server has failed',
  [-2]: 'the server found an inconsistency at run time',
  [-3]: 'the server found its data inconsistent',
  [-4]: 'the server has lost its connection',
  [-5]: 'the server could not read the request, or write the answer',
  [-7]: 'the server took too long',
  [-12]: 'the server does not know the session',
  [-13]: 'the servers of the new configuration have no quorum',
  [-14]: 'the servers are changing their configuration',
  [-100]: 'the server calls it a wrong use of its interface',
  [-113]: 'the server calls the callback invalid',
  [-119]: 'the server is read-only',
  [-120]: 'a local session has no ephemeral znodes',
  [-121]: 'there is no such watch',
  [-122]: 'the request has waited too long at the server',
  [-123]: 'the servers allow no change of their configuration',
  [-125]: 'the quota of a parent is used up',
  [-127]: 'the server is overloaded and has dropped the request',
};
