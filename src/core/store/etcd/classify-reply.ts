import { fieldOf, parsed, textOf } from '../../base/fields.js';
import { tlsProblem } from '../../base/tls.js';
import type { HttpClient } from '../http-client.js';
import type { StoreError } from '../lease-store.js';
import { failing, type StoreRequest } from '../store-request.js';

/** How far a request got, at which server. */
export interface Exchange {
  readonly request: StoreRequest;
  readonly client: HttpClient;
  /** `HOST:PORT`. */
  readonly server: string;
  readonly hasCertificate: boolean;
  /** Whether the requests are those of a user of etcd. */
  readonly hasUser: boolean;
  /** The scheme of URLs that the store does not have, for as long as no server has answered. */
  readonly otherScheme?: string | undefined;
  /** False while no byte of the request can have reached the server. */
  sent: boolean;
  /** The HTTP status; undefined until the head of a reply has arrived. */
  status?: number;
  /** The body of a reply other than success. */
  refusal?: string | undefined;
  /** Whether no usable reply has arrived: the connection, its TLS or the protocol has failed. */
  isUnanswered?: boolean;
}

/** The codes of gRPC that have a meaning here. https://grpc.io/docs/guides/status-codes/ */
const CODE = {
  canceled: 1,
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
export function isTokenRefused({ refusal = '' }: Exchange): boolean {
  const code = codeOf(refusal);
  return code === CODE.unauthenticated || code === CODE.invalid;
}

/**
 * Says what a reply other than success means, by the gRPC code in it; never by the text. With
 * {@link withoutReply} the only place that knows these.
 */
export function classifyReply({
  request,
  server,
  hasUser,
  status = 0,
  refusal: body = '',
}: Exchange): StoreError {
  const failed = failing(request);
  const denied = (detail: string) => failed('denied', 'not-applied', detail);
  const code = codeOf(body);
  if (code === undefined) {
    // The answer of something that is not etcd's gateway.
    const line = body.replace(/\s+/g, ' ').trim().slice(0, 100);
    const said = `${server} answered HTTP ${status}${line === '' ? '' : ` (${line})`}`;
    if (status >= 500) return failed('unavailable', 'unknown', said);
    const hint = 'is this etcd from 3.4 on, with its JSON gateway, and etcds:// where it has TLS?';
    return failed('rejected', 'unknown', `${said}: ${hint}`);
  }
  const error = parsed(body);
  const said = textOf(error, 'message') ?? textOf(error, 'error') ?? `gRPC code ${code}`;
  if (request.operation === 'authenticate') {
    if (code === CODE.invalid) return denied(`wrong user or password (${said})`);
    if (code === CODE.precondition)
      return denied(`the cluster has no users (${said}): leave out etcd.auth (--etcd-auth)`);
  }
  switch (code) {
    case CODE.denied:
      return denied(`access denied (${said}), needs readwrite on the keys below the prefix`);
    case CODE.unauthenticated:
      return denied(`access denied (${said})`);
    case CODE.exhausted:
      // No space left for data, or too many requests under way. The writes that used up the space are refused, and
      // applied. Reads are still answered.
      return failed('unavailable', 'unknown', `${server} takes no more (${said})`);
    case CODE.unimplemented:
      return failed('unsupported', 'not-applied', `not supported by ${server} (${said})`);
    default:
  }
  // The leader was lost, there is no quorum, the server is about to end, or it does not know the outcome.
  if (status >= 500 || status === 408 || code === CODE.canceled)
    return failed('unavailable', 'unknown', `${server} answered HTTP ${status} (${said})`);
  const hint =
    code === CODE.invalid && !hasUser ? 'if the cluster has users, set etcd.auth (--etcd-auth): ' : '';
  return failed('rejected', 'not-applied', `${hint}refused by ${server} (${said})`);
}

/**
 * The connection failed, or the time was over, before the head of a reply had arrived, or in the middle of its
 * body.
 */
export function withoutReply(
  error: unknown,
  { request, server, sent, hasCertificate, otherScheme }: Exchange,
): StoreError {
  const outcome = sent ? 'unknown' : 'not-applied';
  const unreachable = (detail: string) => failing(request, error)('unreachable', outcome, detail);
  const rejected = (detail: string, cause?: unknown) =>
    failing(request, cause)('rejected', outcome, `${server}${detail}`);
  const causes: readonly NodeJS.ErrnoException[] = error instanceof AggregateError ? error.errors : [error];
  const said = [...new Set(causes.map(({ message }) => message))].join(', ');
  const [first] = causes;
  const code = textOf(first, 'code') ?? '';
  if (textOf(first, 'name') === 'TimeoutError')
    return unreachable(`${sent ? '' : `cannot connect to ${server}: `}${said}`);
  const problem = causes.map((cause) => tlsProblem(cause, hasCertificate)).find((text) => text !== undefined);
  // A server that wants a certificate of the client says so after the handshake.
  if (problem !== undefined) return rejected(`: ${problem}`);
  if (code === 'EPROTO')
    return rejected(`: TLS has failed, over the client certificate or the protocol: ${said}`, error);
  if (code.startsWith('HPE_')) return rejected(` does not speak HTTP: ${said}`, error);
  const hint =
    code === 'ECONNRESET' && otherScheme !== undefined ? ` (is it one for ${otherScheme}://?)` : '';
  return unreachable(`${sent ? 'connection lost to' : 'cannot connect to'} ${server}: ${said}${hint}`);
}

/** The gRPC code of the error in a body of the gateway; undefined if there is none. */
function codeOf(body: string): number | undefined {
  const code = fieldOf(parsed(body), 'code');
  return typeof code === 'number' ? code : undefined;
}
