import type { Context, Hono } from 'hono';
import { ConfigError, explain, NodeLeaseError } from '../../core/base/errors.js';
import { isFault, ZooKeeperError } from '../../zookeeper/client/zookeeper.js';

/** The kinds of refusals, as the `error` field of an answer names them, and the status of each. */
const STATUS = {
  'bad-request': 400,
  unauthorized: 401,
  forbidden: 403,
  'not-found': 404,
  'method-not-allowed': 405,
  conflict: 409,
  'too-large': 413,
  'unsupported-media-type': 415,
  internal: 500,
  'refused-by-zookeeper': 502,
  unavailable: 503,
} as const;

/** What kind of refusal an answer is; its `error` field. */
type ProblemCode = keyof typeof STATUS;

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

/** The refusal of a request that may succeed later. */
export function unavailable(message: string, afterSeconds = 1): HttpProblem {
  return new HttpProblem('unavailable', message, { 'retry-after': `${afterSeconds}` });
}

/**
 * The answer to a failure: 400 for wrong values, 502 if ZooKeeper refuses, as without rights, 503 if a server
 * is away or other clients keep changing the znode. The client learns nothing of a fault in this program.
 */
export function problemOf(failure: unknown): HttpProblem {
  if (failure instanceof HttpProblem) return failure;
  if (isFault(failure, 'mixed-payloads')) return new HttpProblem('conflict', failure.message);
  if (failure instanceof ConfigError) return new HttpProblem('bad-request', failure.message);
  if (
    failure instanceof ZooKeeperError &&
    !failure.transient &&
    failure.fault !== 'closed' &&
    failure.fault !== 'aborted'
  )
    return new HttpProblem('refused-by-zookeeper', explain(failure));
  if (failure instanceof NodeLeaseError) return unavailable(explain(failure));
  return new HttpProblem('internal', 'a fault in this server; its log says more');
}

/** The headers of every answer: its content may change at any time, and is never a page. */
export const PLAIN: Readonly<Record<string, string>> = {
  'cache-control': 'no-store',
  'x-content-type-options': 'nosniff',
};

/** An answer in JSON. */
export function jsonAnswer(json: unknown, headers: Readonly<Record<string, string>> = {}): Response {
  return Response.json(json, { headers: { ...PLAIN, ...headers } });
}

/** An answer without content: it is done. */
export function doneAnswer(status = 204): Response {
  return new Response(null, { status, headers: PLAIN });
}

/** A refusal as it is sent: `{ "error", "message" }`. */
export function problemResponse({ error, message, headers }: HttpProblem): Response {
  return Response.json({ error, message }, { status: STATUS[error], headers: { ...PLAIN, ...headers } });
}

/** How an app answers requests of Node's own server. */
export const ADAPTER = {
  // Programs that only import this library keep their own Request and Response.
  overrideGlobalObjects: false,
  /** The refusal of what is no proper request. */
  errorHandler: () =>
    problemResponse(
      new HttpProblem('bad-request', 'the request: expected a host and a path, got something else'),
    ),
};

/**
 * Answers what a handler throws.
 * @param onFailure is called for each request that failed through no fault of the client (500 and above)
 */
export function answerFailures(
  app: Hono,
  onFailure: ((request: string, failure: unknown) => void) | undefined,
): void {
  app.onError((failure, context) => {
    const { method, url, raw } = context.req;
    const response = problemResponse(problemOf(failure));
    // The client no longer waits for the answer: that is no failure.
    if (response.status >= 500 && !raw.signal.aborted)
      onFailure?.(`${method} ${new URL(url).pathname}`, failure);
    return response;
  });
}

/** Answers a request, or throws the reason of its refusal. */
type Handle = (context: Context) => Promise<Response> | Response;

/** A route and its methods; any other one is answered with 405. HEAD is GET without the body. */
export function route(
  app: Hono,
  path: string,
  methods: Readonly<Partial<Record<'GET' | 'POST' | 'PUT' | 'DELETE', Handle>>>,
): void {
  for (const [method, handle] of Object.entries(methods)) app.on(method, path, handle);
  const allow = Object.keys(methods)
    .flatMap((method) => (method === 'GET' ? ['GET', 'HEAD'] : [method]))
    .join(', ');
  app.all(path, ({ req }) => {
    throw new HttpProblem('method-not-allowed', `method: expected ${allow}, got ${req.method}`, { allow });
  });
}
