import { ConfigError, explain, NodeLeaseError } from '../base/errors.js';
import { ZooKeeperError } from '../zookeeper/zookeeper-error.js';

/** What kind of refusal an answer is; its `error` field. */
export type ProblemCode =
  | 'bad-request'
  | 'unauthorized'
  | 'forbidden'
  | 'not-found'
  | 'method-not-allowed'
  | 'too-large'
  | 'unsupported-media-type'
  | 'internal'
  | 'refused-by-zookeeper'
  | 'unavailable';

const STATUS: Readonly<Record<ProblemCode, number>> = {
  'bad-request': 400,
  unauthorized: 401,
  forbidden: 403,
  'not-found': 404,
  'method-not-allowed': 405,
  'too-large': 413,
  'unsupported-media-type': 415,
  internal: 500,
  'refused-by-zookeeper': 502,
  unavailable: 503,
};

/** All of them. */
export const PROBLEM_CODES = Object.keys(STATUS) as readonly ProblemCode[];

/** A request that is answered with a refusal. The client gets the message. */
export class HttpProblem extends Error {
  constructor(
    readonly error: ProblemCode,
    message: string,
    readonly headers: Readonly<Record<string, string>> = {},
  ) {
    super(message);
    this.name = 'HttpProblem';
  }
}

/**
 * The refusal that a failure is answered with. The client learns nothing of a fault in this program.
 *
 * Values that are wrong are the request's own: 400. ZooKeeper away: 503. ZooKeeper refusing, as for want of rights: 502.
 */
export function problemOf(failure: unknown): HttpProblem {
  if (failure instanceof HttpProblem) return failure;
  if (failure instanceof ConfigError) return new HttpProblem('bad-request', failure.message);
  if (failure instanceof ZooKeeperError) {
    const away = failure.transient || failure.fault === 'closed' || failure.fault === 'aborted';
    return away
      ? new HttpProblem('unavailable', explain(failure), { 'retry-after': '1' })
      : new HttpProblem('refused-by-zookeeper', explain(failure));
  }
  if (failure instanceof NodeLeaseError) return new HttpProblem('unavailable', explain(failure), { 'retry-after': '1' });
  return new HttpProblem('internal', 'a fault in this server; its log says more');
}

/** The headers of every answer: what it tells changes at any time, and is never a page. */
export const PLAIN: Readonly<Record<string, string>> = { 'cache-control': 'no-store', 'x-content-type-options': 'nosniff' };

/** A refusal as it is sent: `{ "error", "message" }`. */
export function problemResponse({ error, message, headers }: HttpProblem): Response {
  return Response.json({ error, message }, { status: STATUS[error], headers: { ...PLAIN, ...headers } });
}
