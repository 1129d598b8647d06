import { StoreError, type StoreFault } from '../lease-store.js';
import type { ObservedReply } from './reply-observer.js';

/** The request that failed. */
export interface FailedRequest {
  readonly operation: 'read' | 'list' | 'create' | 'replace' | 'discard';
  /** The store, as its user wrote it. */
  readonly url: string;
  /** The object below the prefix; undefined for a listing. */
  readonly key?: string;
  readonly reply: ObservedReply;
}

/** A definite answer in the form of an HTTP error, or the failure that it is. */
export type Classified = 'conflict' | 'absent' | StoreError;

/**
 * Says what a failed S3 request means, by the HTTP status, S3's error code and the operating system's error code; never by the text.
 * This is the only place that knows these.
 */
export function classifyReply(error: unknown, request: FailedRequest): Classified {
  const { status } = request.reply;
  if (!request.reply.sent) return beforeSending(error, request);
  if (status === undefined) return withoutReply(error, request);
  const code = text(error, 'Code');
  const said = code === undefined ? `HTTP ${status}` : `${code}${messageOf(error)}`;
  const failed = (fault: StoreFault, outcome: 'unknown' | 'not-applied', cause: string) => failure(error, request, fault, outcome, cause);

  if (status < 300) {
    const brokenOff = isTimeout(error) || networkErrors(error).length > 0;
    return brokenOff ? withoutReply(error, request) : failed('rejected', 'unknown', `answered ${status}, but not as S3 does`);
  }
  const conditional = request.operation === 'create' || request.operation === 'replace';
  if (conditional && (status === 412 || status === 409)) return 'conflict';
  if (status === 404) {
    if (code === 'NoSuchBucket') return failed('missing', 'not-applied', 'bucket does not exist');
    if (code === 'NoSuchKey' && request.operation === 'read') return 'absent';
    if (code === 'NoSuchKey' && request.operation === 'replace') return 'conflict';
    if (code === 'NoSuchKey' && request.operation === 'discard') return 'absent';
    // A gateway in front of the store says 404 as well, and must not make a lease look as if it were gone.
    return failed('rejected', 'unknown', `answered ${said}, which does not say what is missing: is this an S3 server?`);
  }
  if (code === 'RequestTimeTooSkewed') return failed('denied', 'not-applied', `access denied (${said}): the clock of this host is wrong`);
  if (status === 304) {
    const what = conditional ? 'where S3 answers 412 or 200' : 'although it was not asked whether it was';
    return failed(
      'rejected',
      'not-applied',
      `answered HTTP 304, not modified, ${what}: a cache stands in between, or this is no S3 server`,
    );
  }
  const region = request.reply.headers['x-amz-bucket-region'] ?? text(error, 'Region');
  if (status < 400 || code === 'AuthorizationHeaderMalformed' || code === 'IllegalLocationConstraintException') {
    return failed(
      'rejected',
      'not-applied',
      `${region === undefined ? 'wrong region or endpoint' : `the bucket is in region ${region}`} (${said})`,
    );
  }
  if (status === 401 || status === 403 || CREDENTIAL_CODES.has(code ?? '')) {
    const needs = code === 'AccessDenied' ? `, needs ${PERMISSION[request.operation]}` : '';
    return failed('denied', 'not-applied', `access denied (${code ?? `HTTP ${status}`}${needs})${messageOf(error)}`);
  }
  if (status === 501) return failed('unsupported', 'not-applied', `not supported by this server (${said})`);
  if (status >= 500 || status === 429 || status === 408 || code === 'RequestTimeout') {
    return failed('unavailable', 'unknown', `answered HTTP ${status}${code === undefined ? '' : ` (${said})`}`);
  }
  return failed('rejected', 'not-applied', `refused (${said})`);
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

const CREDENTIAL_CODES = new Set(['ExpiredToken', 'InvalidToken', 'TokenRefreshRequired', 'InvalidAccessKeyId', 'SignatureDoesNotMatch']);

const PERMISSION = {
  read: 's3:GetObject',
  list: 's3:ListBucket',
  create: 's3:PutObject',
  replace: 's3:PutObject',
  discard: 's3:DeleteObject',
} as const;

/** The SDK failed on the way: nearly always over the credentials, which it fetches with the first request. */
function beforeSending(error: unknown, request: FailedRequest): StoreError {
  const name = text(error, 'name') ?? '';
  if (name.endsWith('ProviderError'))
    return failure(error, request, 'denied', 'not-applied', `no AWS credentials found${messageOf(error)}`);
  if (isTimeout(error) || networkErrors(error).length > 0) {
    return failure(error, request, 'unreachable', 'not-applied', `not sent, for want of credentials or time${messageOf(error)}`);
  }
  const status = numberAt(error, '$metadata', 'httpStatusCode');
  // A bucket of S3 Express is asked for a session first, by a request of the SDK's own.
  if (status !== undefined && DIRECTORY_BUCKET.test(request.url)) return withoutSession(error, request, status);
  if (status !== undefined && status >= 500) {
    return failure(error, request, 'unavailable', 'not-applied', `not sent, no AWS credentials to be had (${name}, HTTP ${status})`);
  }
  if (status !== undefined)
    return failure(error, request, 'denied', 'not-applied', `no AWS credentials to be had (${name}, HTTP ${status})`);
  return failure(error, request, 'rejected', 'not-applied', `not sent${messageOf(error)}`);
}

const DIRECTORY_BUCKET = /^s3:\/\/[^/]*--x-s3(\/|$)/;

function withoutSession(error: unknown, request: FailedRequest, status: number): StoreError {
  const code = text(error, 'Code') ?? text(error, 'name') ?? '';
  const said = `${code}${messageOf(error)}`;
  if (code === 'NoSuchBucket') return failure(error, request, 'missing', 'not-applied', 'bucket does not exist');
  if (status === 401 || status === 403) {
    return failure(error, request, 'denied', 'not-applied', `access denied (${code}, needs s3express:CreateSession)${messageOf(error)}`);
  }
  return failure(
    error,
    request,
    status >= 500 ? 'unavailable' : 'rejected',
    'not-applied',
    `no session to be had, HTTP ${status} (${said})`,
  );
}

/** The connection failed, or the time was up, before the head of a reply had arrived, or in the middle of its body. */
function withoutReply(error: unknown, request: FailedRequest): StoreError {
  const causes = networkErrors(error);
  const neverConnected = causes.length > 0 && causes.every((cause) => isBeforeConnection(cause));
  const said = causes.map((cause) => messageOf(cause).slice(2)).join(', ');
  if (neverConnected) return failure(causes[0], request, 'unreachable', 'not-applied', `cannot connect: ${said}`);
  if (isTimeout(error)) return failure(error, request, 'unreachable', 'unknown', messageOf(error).slice(2));
  if (causes.some((cause) => isCertificateError(text(cause, 'code') ?? ''))) {
    return failure(causes[0], request, 'rejected', 'not-applied', `the server's certificate is not trusted: ${said}`);
  }
  if (causes.some((cause) => /^(HPE_|EPROTO$|ERR_SSL_)/.test(text(cause, 'code') ?? ''))) {
    return failure(causes[0], request, 'rejected', 'unknown', `the server does not speak the protocol of the endpoint's URL: ${said}`);
  }
  return failure(error, request, 'unreachable', 'unknown', `connection lost${causes.length > 0 ? `: ${said}` : messageOf(error)}`);
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

/** Node reports a certificate that it refuses before it sends the first byte of a request. */
function isCertificateError(code: string): boolean {
  return /^(CERT_|ERR_TLS_CERT_|DEPTH_ZERO_|SELF_SIGNED_|UNABLE_TO_)/.test(code);
}

function isTimeout(error: unknown): boolean {
  // The SDK gives this name to lost connections too, but those keep the operating system's code.
  const code = text(error, 'code');
  return text(error, 'name') === 'TimeoutError' && (code === undefined || code === 'ETIMEDOUT');
}

function failure(error: unknown, request: FailedRequest, fault: StoreFault, outcome: 'unknown' | 'not-applied', cause: string): StoreError {
  // A missing bucket is the same whatever was tried in it.
  const what = fault === 'missing' ? '' : `${attempt(request)}: `;
  return new StoreError(`${request.url}: ${what}${cause}`, { fault, outcome, ...(speaks(error) ? { cause: error } : {}) });
}

const ATTEMPTS = { read: 'reading', list: 'listing', create: 'creating', replace: 'replacing', discard: 'removing' } as const;

function attempt({ operation, key }: FailedRequest): string {
  return `${ATTEMPTS[operation]}${key === undefined ? '' : ` ${key}`}`;
}

/** False for the errors that tell of the SDK's parser and not of the store; whoever prints causes would print them. */
function speaks(error: unknown): boolean {
  return text(error, 'Code') !== undefined || text(error, 'code') !== undefined || text(error, 'name')?.endsWith('ProviderError') === true;
}

function messageOf(error: unknown): string {
  const message = (text(error, 'message') ?? '').replace(/\s+/g, ' ').trim();
  return message === '' || message === 'UnknownError' ? '' : `: ${message}`;
}

function text(error: unknown, field: string): string | undefined {
  const value = typeof error === 'object' && error !== null ? (error as Record<string, unknown>)[field] : undefined;
  return typeof value === 'string' && value !== '' ? value : undefined;
}

function numberAt(error: unknown, outer: string, field: string): number | undefined {
  const holder = typeof error === 'object' && error !== null ? (error as Record<string, unknown>)[outer] : undefined;
  const value = typeof holder === 'object' && holder !== null ? (holder as Record<string, unknown>)[field] : undefined;
  return typeof value === 'number' ? value : undefined;
}
