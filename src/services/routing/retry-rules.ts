import { Readable } from 'node:stream';

/** Codes of failures of the other side or of the network: the operating system's, undici's, the resolver's. Once a request has been sent, only these count. */
const NETWORK_CODES: ReadonlySet<string> = new Set([
  'ECONNREFUSED',
  'ECONNRESET',
  'ECONNABORTED',
  'EPIPE',
  'ETIMEDOUT',
  'EHOSTUNREACH',
  'EHOSTDOWN',
  'ENETUNREACH',
  'ENETDOWN',
  'ENOTFOUND',
  'EAI_AGAIN',
  'UND_ERR_CONNECT_TIMEOUT',
  'UND_ERR_HEADERS_TIMEOUT',
  'UND_ERR_HEADERS_OVERFLOW',
  'UND_ERR_BODY_TIMEOUT',
  'UND_ERR_SOCKET',
  'UND_ERR_RES_CONTENT_LENGTH_MISMATCH',
]);

/** Codes of errors on this side: a wrong request, a closed dispatcher, an abort. */
const OWN_CODES: ReadonlySet<string> = new Set([
  'UND_ERR_INVALID_ARG',
  'UND_ERR_INVALID_RETURN_VALUE',
  'UND_ERR_NOT_SUPPORTED',
  'UND_ERR_ABORT',
  'UND_ERR_ABORTED',
  'UND_ERR_DESTROYED',
  'UND_ERR_CLOSED',
  'UND_ERR_MAX_ORIGINS_REACHED',
  'UND_ERR_REQ_CONTENT_LENGTH_MISMATCH',
  'UND_ERR_INFO',
  // Too few descriptors, ports or memory on this machine.
  'EMFILE',
  'ENFILE',
  'ENOBUFS',
  'ENOMEM',
  'EADDRNOTAVAIL',
  'EACCES',
  'EPERM',
]);

/**
 * Whether a request failed because of the instance, going by the error's code, or its name where undici gives it none.
 *
 * @param sent whether a connection was there and the request was being sent
 * @param body the body of the request
 */
export function isInstanceFault(error: unknown, sent: boolean, body: unknown): boolean {
  if (body instanceof Readable && body.errored !== null && body.errored === error) return false;
  // What is no HTTP at all has no code in undici 7.
  if (error instanceof Error && error.name === 'HTTPParserError') return true;
  const code = codeOf(error);
  if (sent) return code !== undefined && (NETWORK_CODES.has(code) || code.startsWith('HPE_'));
  // Any failure to connect, a bad certificate included, except those on this side.
  return code !== undefined && !OWN_CODES.has(code);
}

function codeOf(error: unknown): string | undefined {
  if (!(error instanceof Error)) return undefined;
  if ('code' in error && typeof error.code === 'string') return error.code;
  // What Node makes of several addresses of one host, none of which answered.
  return error instanceof AggregateError ? codeOf(error.errors[0]) : undefined;
}

/** The methods that may be sent twice with the same effect as once (RFC 9110, 9.2.2). */
const IDEMPOTENT_METHODS: ReadonlySet<string> = new Set(['GET', 'HEAD', 'OPTIONS', 'PUT', 'DELETE', 'TRACE']);

const REPLAYABLE_TAGS: ReadonlySet<string> = new Set(['[object Blob]', '[object File]', '[object FormData]']);

/** Whether a method may be sent again though it may have been carried out already. */
export function isIdempotent(method: string): boolean {
  return IDEMPOTENT_METHODS.has(method);
}

/** Whether a body can be sent a second time after the first sending began: not what is read once, such as a stream or a generator. */
export function isReplayable(body: unknown): boolean {
  if (body === null || body === undefined || typeof body === 'string') return true;
  if (ArrayBuffer.isView(body) || body instanceof ArrayBuffer) return true;
  // undici has classes of its own for these, beside Node's.
  return REPLAYABLE_TAGS.has(Object.prototype.toString.call(body));
}

/** Whether a body can be handed over again after a connection could not be made: all can that nobody has begun to read. */
export function isUntouched(body: unknown): boolean {
  return !(body instanceof Readable) || (!body.destroyed && !Readable.isDisturbed(body));
}
