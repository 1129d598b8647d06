import type { ZooKeeperFault } from './zookeeper-error.js';

/** Why one request failed, before it is told which call it was made for. */
export class RequestFailure extends Error {
  /**
   * @param fault what the caller is told
   * @param mayBeApplied whether a write may have been carried out all the same
   * @param detail for people
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

/** The connection broke before the answer came. */
export function connectionLost(problem: string | undefined): RequestFailure {
  return new RequestFailure('connection-loss', true, problem ?? 'the connection was lost');
}

/** A server's refusal, by the code of its answer (`KeeperException.Code`). */
export function failureOf(code: number, index?: number): RequestFailure {
  const known = FAILURES[code];
  if (known) return new RequestFailure(known[0], false, known[1], index);
  // From -100 down the request was judged and refused; above that the server itself had trouble.
  return new RequestFailure('refused', code > -100, `the server refused it with code ${code}`, index);
}

/** A session that moved to another server while a request was under way: the request was dropped, and so is the connection. */
export const SESSION_MOVED = -118;

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
};
