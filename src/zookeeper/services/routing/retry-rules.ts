import { Readable } from 'node:stream';
import { textOf } from '../../../core/base/fields.js';

/**
 * Codes of failures of the other side or of the network: the operating system's, undici's, the resolver's.
 */
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

/** Codes of errors of this machine: too few descriptors, ports or memory, no permission. */
const LOCAL_CODES: ReadonlySet<string> = new Set([
  'EMFILE',
  'ENFILE',
  'ENOBUFS',
  'ENOMEM',
  'EADDRNOTAVAIL',
  'EACCES',
  'EPERM',
]);

/**
 * Whether a request failed because of the instance, by the error's code, or by its name if undici gives no
 * code.
 *
 * @param sent whether a connection was there and the request was being sent
 * @param body the body of the request
 */
export function isInstanceFault(error: unknown, sent: boolean, body: unknown): boolean {
  if (body instanceof Readable && body.errored !== null && body.errored === error) return false;
  // An answer that is not HTTP has no code in undici 7.
  if (error instanceof Error && error.name === 'HTTPParserError') return true;
  const code = codeOf(error);
  if (code === undefined) return false;
  if (NETWORK_CODES.has(code) || code.startsWith('HPE_')) return true;
  // Any other failure to connect, such as a bad certificate. undici's other errors mean a wrong request, a
  // closed dispatcher, or an abort.
  return !sent && !LOCAL_CODES.has(code) && !code.startsWith('UND_ERR_');
}

function codeOf(error: unknown): string | undefined {
  // A host with several addresses, all without an answer.
  return textOf(error, 'code') ?? (error instanceof AggregateError ? codeOf(error.errors[0]) : undefined);
}

/** The methods that may be sent twice with the same effect as once (RFC 9110, 9.2.2). */
export const IDEMPOTENT_METHODS: ReadonlySet<string> = new Set([
  'GET',
  'HEAD',
  'OPTIONS',
  'PUT',
  'DELETE',
  'TRACE',
]);

const REPLAYABLE_TAGS: ReadonlySet<string> = new Set(['[object Blob]', '[object File]', '[object FormData]']);

/**
 * Whether a body can be sent again after a first attempt began: not a body that is read once, such as a
 * stream or a generator.
 */
export function isReplayable(body: unknown): boolean {
  if (body == null || typeof body === 'string') return true;
  if (ArrayBuffer.isView(body) || body instanceof ArrayBuffer) return true;
  // undici has its own classes for these, in addition to Node's.
  return REPLAYABLE_TAGS.has(Object.prototype.toString.call(body));
}

/**
 * Whether a body can be handed over again after a connection could not be made: nothing has begun to read it.
 */
export function isUntouched(body: unknown): boolean {
  return !(body instanceof Readable) || (!body.destroyed && !Readable.isDisturbed(body));
}
