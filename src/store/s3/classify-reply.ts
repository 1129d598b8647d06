import { StoreError, type StoreFault } from '../lease-store.js';
import type { ObservedReply } from './reply.js';

/** The request that failed. */
export interface FailedRequest {
  readonly operation: keyof typeof OPERATIONS;
  /** The store, as its user wrote it. */
  readonly url: string;
  /** The object below the prefix; undefined for a listing. */
  readonly key?: string;
  readonly reply: ObservedReply;
}

/**
 * Says what a failed S3 request means, by the HTTP status, S3's error code and the operating system's error code; never by the text.
 * This is the only place that knows these.
 *
 * @returns `conflict` for `create` and `replace` only, `absent` for `read` and `discard` only
 */
export function classifyReply(error: unknown, request: FailedRequest): 'conflict' | 'absent' | StoreError {
  const { operation, reply } = request;
  const { status } = reply;
  if (!reply.sent) return beforeSending(error, request);
  if (status === undefined) return withoutReply(error, request);
  const code = text(error, 'Code') ?? '';
  const said = code === '' ? `HTTP ${status}` : `${code}${messageOf(error)}`;
  const failed = failing(error, request);
  const refused = (cause: string) => failed('rejected', 'not-applied', cause);

  if (status < 300) {
    const brokenOff = isTimeout(error) || networkErrors(error).length > 0;
    return brokenOff ? withoutReply(error, request) : failed('rejected', 'unknown', `answered ${status}, but not as S3 does`);
  }
  const conditional = operation === 'create' || operation === 'replace';
  if (conditional && (status === 412 || status === 409)) return 'conflict';
  if (status === 404) {
    if (code === 'NoSuchBucket') return failed('missing', 'not-applied', 'bucket does not exist');
    if (code === 'NoSuchKey' && operation === 'replace') return 'conflict';
    if (code === 'NoSuchKey' && (operation === 'read' || operation === 'discard')) return 'absent';
    // A gateway in front of the store says 404 as well, and must not make a lease look as if it were gone.
    return failed('rejected', 'unknown', `answered ${said}, which does not say what is missing: is this an S3 server?`);
  }
  if (code === 'RequestTimeTooSkewed') return failed('denied', 'not-applied', `access denied (${said}): the clock of this host is wrong`);
  if (status === 304) {
    const what = conditional ? 'where S3 answers 412 or 200' : 'although it was not asked whether it was';
    return refused(`answered HTTP 304, not modified, ${what}: a cache stands in between, or this is no S3 server`);
  }
  if (status < 400 || code === 'AuthorizationHeaderMalformed' || code === 'IllegalLocationConstraintException') {
    const region = reply.headers['x-amz-bucket-region'] ?? text(error, 'Region');
    return refused(`${region === undefined ? 'wrong region or endpoint' : `the bucket is in region ${region}`} (${said})`);
  }
  if (status === 401 || status === 403 || CREDENTIAL_CODES.includes(code)) {
    const needs = code === 'AccessDenied' ? `, needs ${OPERATIONS[operation].needs}` : '';
    return failed('denied', 'not-applied', `access denied (${code || `HTTP ${status}`}${needs})${messageOf(error)}`);
  }
  if (status === 501) return failed('unsupported', 'not-applied', `not supported by this server (${said})`);
  if (status >= 500 || status === 429 || status === 408 || code === 'RequestTimeout') {
    return failed('unavailable', 'unknown', `answered HTTP ${status}${code === '' ? '' : ` (${said})`}`);
  }
  return refused(`refused (${said})`);
}

/** A difference of clocks that no server minds, in milliseconds; they refuse from 15 minutes on. */
const HARMLESS_SKEW_MS = 60_000;

/**
 * True when the server refused the request for the time in its signature, and told another time along with the refusal. Such a request is
 * certainly not applied: signatures are looked at first. The SDK signs with the server's time from then on, so that the same call gets through.
 */
export function teachesTime(error: unknown, { status, headers, signedAt }: ObservedReply): boolean {
  if (status === undefined || status < 400 || text(error, 'Code') !== 'RequestTimeTooSkewed') return false;
  const signed = signedAt?.replace(/^(\d{4})(\d\d)(\d\d)T(\d\d)(\d\d)(\d\d)Z$/, '$1-$2-$3T$4:$5:$6Z') ?? '';
  return Math.abs(Date.parse(headers.date ?? '') - Date.parse(signed)) > HARMLESS_SKEW_MS;
}

/** The failure of a request that its caller gave up: a write of unknown outcome, unless it had not been sent. */
export function givenUp(reason: unknown, request: FailedRequest): StoreError {
  const outcome = request.reply.sent ? 'unknown' : 'not-applied';
  return new StoreError(`${request.url}: ${attempt(request)}: given up`, { fault: 'unreachable', outcome, cause: reason });
}

/** A reply that says nothing a store could mean. */
export function senseless(request: Omit<FailedRequest, 'reply'>, answer: string): StoreError {
  return new StoreError(`${request.url}: ${attempt(request)}: answered ${answer}`, { fault: 'rejected', outcome: 'unknown' });
}

const CREDENTIAL_CODES = ['ExpiredToken', 'InvalidToken', 'TokenRefreshRequired', 'InvalidAccessKeyId', 'SignatureDoesNotMatch'];

/** What each operation is called in messages, and the permission that it needs. */
const OPERATIONS = {
  read: { doing: 'reading', needs: 's3:GetObject' },
  list: { doing: 'listing', needs: 's3:ListBucket' },
  create: { doing: 'creating', needs: 's3:PutObject' },
  replace: { doing: 'replacing', needs: 's3:PutObject' },
  discard: { doing: 'removing', needs: 's3:DeleteObject' },
} as const;

const DIRECTORY_BUCKET = /^s3:\/\/[^/]*--x-s3(\/|$)/;

/** The SDK failed on the way: nearly always over the credentials, which it fetches with the first request. */
function beforeSending(error: unknown, request: FailedRequest): StoreError {
  const name = text(error, 'name') ?? '';
  const failed = (fault: StoreFault, cause: string) => failing(error, request)(fault, 'not-applied', cause);
  if (name.endsWith('ProviderError')) return failed('denied', `no AWS credentials found${messageOf(error)}`);
  if (isTimeout(error) || networkErrors(error).length > 0) {
    return failed('unreachable', `not sent, for want of credentials or time${messageOf(error)}`);
  }
  const status = statusOf(error);
  if (status === undefined) return failed('rejected', `not sent${messageOf(error)}`);
  if (!DIRECTORY_BUCKET.test(request.url)) {
    const what = status >= 500 ? 'not sent, no AWS credentials to be had' : 'no AWS credentials to be had';
    return failed(status >= 500 ? 'unavailable' : 'denied', `${what} (${name}, HTTP ${status})`);
  }
  // A bucket of S3 Express is asked for a session first, by a request of the SDK's own.
  const code = text(error, 'Code') ?? name;
  if (code === 'NoSuchBucket') return failed('missing', 'bucket does not exist');
  if (status === 401 || status === 403) {
    return failed('denied', `access denied (${code}, needs s3express:CreateSession)${messageOf(error)}`);
  }
  return failed(status >= 500 ? 'unavailable' : 'rejected', `no session to be had, HTTP ${status} (${code}${messageOf(error)})`);
}

/** The connection failed, or the time was up, before the head of a reply had arrived, or in the middle of its body. */
function withoutReply(error: unknown, request: FailedRequest): StoreError {
  const causes = networkErrors(error);
  const [first = error] = causes;
  const codes = causes.map((cause) => text(cause, 'code') ?? '');
  const said = causes.map((cause) => messageOf(cause).slice(2)).join(', ');
  if (causes.length > 0 && causes.every(isBeforeConnection)) {
    return failing(first, request)('unreachable', 'not-applied', `cannot connect: ${said}`);
  }
  if (isTimeout(error)) return failing(error, request)('unreachable', 'unknown', messageOf(error).slice(2));
  // Node reports a certificate that it refuses before it sends the first byte of a request.
  if (codes.some((code) => /^(CERT_|ERR_TLS_CERT_|DEPTH_ZERO_|SELF_SIGNED_|UNABLE_TO_)/.test(code))) {
    return failing(first, request)('rejected', 'not-applied', `the server's certificate is not trusted: ${said}`);
  }
  if (codes.some((code) => /^(HPE_|EPROTO$|ERR_SSL_)/.test(code))) {
    return failing(first, request)('rejected', 'unknown', `the server does not speak the protocol of the endpoint's URL: ${said}`);
  }
  return failing(error, request)('unreachable', 'unknown', `connection lost${causes.length > 0 ? `: ${said}` : messageOf(error)}`);
}

/** The errors of the operating system and of Node in `error`: one for every address that was tried. */
function networkErrors(error: unknown): readonly unknown[] {
  const inner = error instanceof AggregateError ? error.errors : [error];
  return inner.filter((each) => text(each, 'code') !== undefined);
}

/** True only where no byte of a request can have been sent; when in doubt, false. */
function isBeforeConnection(error: unknown): boolean {
  const syscall = text(error, 'syscall');
  return syscall === 'connect' || syscall === 'getaddrinfo';
}

function isTimeout(error: unknown): boolean {
  // The SDK gives this name to lost connections too, but those keep the operating system's code.
  const code = text(error, 'code');
  return text(error, 'name') === 'TimeoutError' && (code === undefined || code === 'ETIMEDOUT');
}

/** Makes the failures of a request. */
function failing(error: unknown, request: FailedRequest) {
  return (fault: StoreFault, outcome: StoreError['outcome'], cause: string): StoreError => {
    // A missing bucket is the same whatever was tried in it.
    const what = fault === 'missing' ? '' : `${attempt(request)}: `;
    return new StoreError(`${request.url}: ${what}${cause}`, { fault, outcome, ...(speaks(error) ? { cause: error } : {}) });
  };
}

function attempt({ operation, key }: Omit<FailedRequest, 'reply'>): string {
  return `${OPERATIONS[operation].doing}${key === undefined ? '' : ` ${key}`}`;
}

/** False for the errors that tell of the SDK's parser and not of the store: causes are printed. */
function speaks(error: unknown): boolean {
  return text(error, 'Code') !== undefined || text(error, 'code') !== undefined || text(error, 'name')?.endsWith('ProviderError') === true;
}

function messageOf(error: unknown): string {
  const message = (text(error, 'message') ?? '').replace(/\s+/g, ' ').trim();
  return message === '' || message === 'UnknownError' ? '' : `: ${message}`;
}

function text(error: unknown, field: string): string | undefined {
  const value = fieldOf(error, field);
  return typeof value === 'string' && value !== '' ? value : undefined;
}

function statusOf(error: unknown): number | undefined {
  const value = fieldOf(fieldOf(error, '$metadata'), 'httpStatusCode');
  return typeof value === 'number' ? value : undefined;
}

function fieldOf(value: unknown, field: string): unknown {
  return typeof value === 'object' && value !== null ? (value as Record<string, unknown>)[field] : undefined;
}
