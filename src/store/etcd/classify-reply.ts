import { tlsProblem } from '../../base/tls.js';
import { StoreError, type StoreFault } from '../lease-store.js';

/** What the gateway is asked for. */
export interface EtcdRequest {
  readonly operation: keyof typeof OPERATIONS;
  /** The store, as its user wrote it. */
  readonly url: string;
  /** The object below the prefix; undefined for what is about no object. */
  readonly key?: string;
}

/** How far a request got, at which server. */
export interface Exchange {
  /** `HOST:PORT`. */
  readonly server: string;
  readonly hasCertificate: boolean;
  /** The scheme of URLs that the store does not have, for as long as no server has answered. */
  readonly otherScheme?: string | undefined;
  /** False while no byte of the request can have reached the server. */
  sent: boolean;
  /** The HTTP status; undefined until the head of a reply has arrived. */
  status?: number;
}

/** What each operation is called in messages. */
const OPERATIONS = {
  read: 'reading',
  list: 'listing',
  create: 'creating',
  replace: 'replacing',
  discard: 'removing',
  watch: 'watching',
  authenticate: 'authenticating',
  examine: 'examining the servers',
} as const;

/** The codes of gRPC that tell something. https://grpc.io/docs/guides/status-codes/ */
const CODE = {
  invalid: 3,
  denied: 7,
  exhausted: 8,
  precondition: 9,
  unimplemented: 12,
  unauthenticated: 16,
} as const;

/**
 * True for a refusal that a new token may lift: etcd forgets tokens after some minutes and at a restart, and
 * holds tokens older than the last change of its users for invalid. Nothing was applied.
 */
export function isTokenRefused(status: number, body: string): boolean {
  const { code } = errorOf(body) ?? {};
  return status !== 200 && (code === CODE.unauthenticated || code === CODE.invalid);
}

/**
 * Says what a reply other than success means, by the gRPC code in it; never by the text. With
 * {@link withoutReply} the only place that knows these.
 */
export function classifyReply(
  request: EtcdRequest,
  { server, status = 0 }: Exchange,
  body: string,
): StoreError {
  const failed = failing(request);
  const error = errorOf(body);
  if (error === undefined) return foreign(request, { server, status }, body);
  const { code } = error;
  const said = error.text === '' ? `gRPC code ${code}` : error.text;
  if (request.operation === 'authenticate') {
    if (code === CODE.invalid) return failed('denied', 'not-applied', `wrong user or password (${said})`);
    if (code === CODE.precondition)
      return failed('denied', 'not-applied', `the cluster has no users (${said}): leave out --etcd-auth`);
  }
  switch (code) {
    case CODE.denied:
      return failed(
        'denied',
        'not-applied',
        `access denied (${said}), needs readwrite on the keys below the prefix`,
      );
    case CODE.unauthenticated:
      return failed('denied', 'not-applied', `access denied (${said})`);
    case CODE.exhausted:
      // No space left for data, or too many requests under way. Reading goes on.
      return failed('unavailable', 'not-applied', `${server} takes no more (${said})`);
    case CODE.unimplemented:
      return failed('unsupported', 'not-applied', `not supported by ${server} (${said})`);
    default:
  }
  // The leader was lost, there is no quorum, the server is about to end, or it cannot tell what came of the
  // request.
  if (status >= 500 || status === 408)
    return failed('unavailable', 'unknown', `${server} answered HTTP ${status} (${said})`);
  return failed('rejected', 'not-applied', `refused by ${server} (${said})`);
}

/** The answer of something that is not etcd's gateway. */
function foreign(
  request: EtcdRequest,
  { server, status }: Pick<Exchange, 'server'> & { status: number },
  body: string,
): StoreError {
  const failed = failing(request);
  const line = body.replace(/\s+/g, ' ').trim().slice(0, 100);
  const said = `${server} answered HTTP ${status}${line === '' ? '' : ` (${line})`}`;
  if (status >= 500) return failed('unavailable', 'unknown', said);
  return failed(
    'rejected',
    'unknown',
    `${said}: is this etcd from 3.4 on, with its JSON gateway, and etcds:// where it has TLS?`,
  );
}

/**
 * The connection failed, or the time was up, before the head of a reply had arrived, or in the middle of its
 * body.
 */
export function withoutReply(
  error: unknown,
  request: EtcdRequest,
  { server, sent, hasCertificate, otherScheme }: Exchange,
): StoreError {
  const failed = failing(request, error);
  const outcome = sent ? 'unknown' : 'not-applied';
  const causes: readonly NodeJS.ErrnoException[] = error instanceof AggregateError ? error.errors : [error];
  const said = [...new Set(causes.map(({ message }) => message))].join(', ');
  const [{ name = '', code = '' } = {}] = causes as readonly { name?: string; code?: string }[];
  if (name === 'TimeoutError')
    return failed('unreachable', outcome, `${sent ? '' : `cannot connect to ${server}: `}${said}`);
  const problem = causes.map((cause) => tlsProblem(cause, hasCertificate)).find((text) => text !== undefined);
  // A server that wants a certificate of the client says so after the handshake.
  if (problem !== undefined) return failing(request)('rejected', outcome, `${server}: ${problem}`);
  if (code === 'EPROTO')
    return failed(
      'rejected',
      outcome,
      `${server}: TLS has failed, over the client certificate or the protocol: ${said}`,
    );
  if (code.startsWith('HPE_')) return failed('rejected', outcome, `${server} does not speak HTTP: ${said}`);
  const hint =
    code === 'ECONNRESET' && otherScheme !== undefined ? ` (is it one for ${otherScheme}://?)` : '';
  return failed(
    'unreachable',
    outcome,
    `${sent ? 'connection lost to' : 'cannot connect to'} ${server}: ${said}${hint}`,
  );
}

/**
 * The failure of a request that its caller gave up: a write of unknown outcome, unless it had not been sent.
 */
export function givenUp(reason: unknown, request: EtcdRequest, { sent }: Pick<Exchange, 'sent'>): StoreError {
  return failing(request, reason)('unreachable', sent ? 'unknown' : 'not-applied', 'given up');
}

/** A reply that says nothing etcd could mean. */
export function senseless(request: EtcdRequest, answer: string): StoreError {
  return failing(request)('rejected', 'unknown', `answered ${answer}`);
}

function failing({ url, operation, key }: EtcdRequest, cause?: unknown) {
  const what = `${url}: ${OPERATIONS[operation]}${key === undefined ? '' : ` ${key}`}`;
  return (fault: StoreFault, outcome: StoreError['outcome'], text: string) =>
    new StoreError(`${what}: ${text}`, { fault, outcome, cause });
}

/** The error in a body of the gateway; undefined where there is none. */
function errorOf(body: string): { readonly code: number; readonly text: string } | undefined {
  try {
    const { code, message, error } = JSON.parse(body) as {
      code?: unknown;
      message?: unknown;
      error?: unknown;
    };
    if (typeof code !== 'number') return undefined;
    const text = typeof message === 'string' ? message : error;
    return { code, text: typeof text === 'string' ? text : '' };
  } catch {
    return undefined;
  }
}
