import {
  connectionFailure,
  fieldOf,
  isTimeout,
  messageOf,
  networkErrors,
  textOf,
} from '../connection-failure.js';
import { isClockWrong } from '../host-clock.js';
import type { StoreError, StoreFault } from '../lease-store.js';
import { failure, type StoreRequest } from '../store-request.js';
import type { ObservedReply } from './reply.js';

/** The request that failed. */
export interface FailedRequest extends StoreRequest {
  readonly reply: ObservedReply;
}

/**
 * Says what a failed S3 request means, by the HTTP status, S3's error code and the operating system's error
 * code; never by the text. This is the only place that knows these.
 *
 * @returns `conflict` for `create` and `replace` only, `absent` for `read` and `discard` only
 */
export function classifyReply(error: unknown, request: FailedRequest): 'conflict' | 'absent' | StoreError {
  const { operation, reply } = request;
  const { status } = reply;
  if (!reply.sent) return beforeSending(error, request);
  if (status === undefined) return withoutReply(error, request);
  const code = textOf(error, 'Code') ?? '';
  const said = code === '' ? `HTTP ${status}` : `${code}${messageOf(error)}`;
  const failed = failing(error, request);
  const refused = (cause: string) => failed('rejected', 'not-applied', cause);

  if (status < 300) {
    const brokenOff = isTimeout(error) || networkErrors(error).length > 0;
    return brokenOff
      ? withoutReply(error, request)
      : failed('rejected', 'unknown', `answered ${status}, but not as S3 does`);
  }
  const conditional = operation === 'create' || operation === 'replace';
  if (conditional && (status === 412 || status === 409)) return 'conflict';
  if (status === 404) {
    if (code === 'NoSuchBucket') return failed('missing', 'not-applied', 'bucket does not exist');
    if (code === 'NoSuchKey' && operation === 'replace') return 'conflict';
    if (code === 'NoSuchKey' && (operation === 'read' || operation === 'discard')) return 'absent';
    // A gateway in front of the store says 404 as well, and must not make a lease look as if it were gone.
    return failed(
      'rejected',
      'unknown',
      `answered ${said}, which does not say what is missing: is this an S3 server?`,
    );
  }
  if (code === 'RequestTimeTooSkewed')
    return failed('denied', 'not-applied', `access denied (${said}): the clock of this host is wrong`);
  if (status === 304) {
    const what = conditional ? 'where S3 answers 412 or 200' : 'although it was not asked whether it was';
    return refused(
      `answered HTTP 304, not modified, ${what}: a cache stands in between, or this is no S3 server`,
    );
  }
  if (
    status < 400 ||
    code === 'AuthorizationHeaderMalformed' ||
    code === 'IllegalLocationConstraintException'
  ) {
    const region = reply.headers['x-amz-bucket-region'] ?? textOf(error, 'Region');
    return refused(
      `${region === undefined ? 'wrong region or endpoint' : `the bucket is in region ${region}`} (${said})`,
    );
  }
  if (status === 401 || status === 403 || CREDENTIAL_CODES.includes(code)) {
    const needs = code === 'AccessDenied' ? `, needs ${NEEDS[operation]}` : '';
    return failed(
      'denied',
      'not-applied',
      `access denied (${code || `HTTP ${status}`}${needs})${messageOf(error)}`,
    );
  }
  if (status === 501) return failed('unsupported', 'not-applied', `not supported by this server (${said})`);
  if (status >= 500 || status === 429 || status === 408 || code === 'RequestTimeout') {
    return failed('unavailable', 'unknown', `answered HTTP ${status}${code === '' ? '' : ` (${said})`}`);
  }
  return refused(`refused (${said})`);
}

/**
 * True when the server refused the request for the time in its signature, and told another time along with
 * the refusal. Such a request is certainly not applied: signatures are looked at first. The SDK signs with
 * the server's time from then on, so that the same call gets through.
 */
export function teachesTime(error: unknown, { status, headers, signedAt }: ObservedReply): boolean {
  if (status === undefined || status < 400 || textOf(error, 'Code') !== 'RequestTimeTooSkewed') return false;
  const signed = signedAt?.replace(/^(\d{4})(\d\d)(\d\d)T(\d\d)(\d\d)(\d\d)Z$/, '$1-$2-$3T$4:$5:$6Z') ?? '';
  return isClockWrong(headers.date, Date.parse(signed));
}

/**
 * True when the credentials were refused, and not what they may do. Such a request is certainly not applied.
 */
export function refusesCredentials(error: unknown): boolean {
  return CREDENTIAL_CODES.includes(textOf(error, 'Code') ?? '');
}

/**
 * The failure of a request that its caller gave up: a write of unknown outcome, unless it had not been sent.
 */
export function givenUp(reason: unknown, request: FailedRequest): StoreError {
  const outcome = request.reply.sent ? 'unknown' : 'not-applied';
  return failure(request, { fault: 'unreachable', outcome, detail: 'given up', cause: reason });
}

/** `InvalidTokenId` is MinIO's. */
const CREDENTIAL_CODES = [
  'ExpiredToken',
  'InvalidToken',
  'InvalidTokenId',
  'TokenRefreshRequired',
  'InvalidAccessKeyId',
  'SignatureDoesNotMatch',
];

/** The permission that each operation needs. */
const NEEDS = {
  read: 's3:GetObject',
  list: 's3:ListBucket',
  create: 's3:PutObject',
  replace: 's3:PutObject',
  discard: 's3:DeleteObject',
} as const;

const DIRECTORY_BUCKET = /^s3:\/\/[^/]*--x-s3(\/|$)/;

/** The SDK failed on the way: nearly always over the credentials, which it fetches with the first request. */
function beforeSending(error: unknown, request: FailedRequest): StoreError {
  const name = textOf(error, 'name') ?? '';
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
  const code = textOf(error, 'Code') ?? name;
  if (code === 'NoSuchBucket') return failed('missing', 'bucket does not exist');
  if (status === 401 || status === 403) {
    return failed('denied', `access denied (${code}, needs s3express:CreateSession)${messageOf(error)}`);
  }
  return failed(
    status >= 500 ? 'unavailable' : 'rejected',
    `no session to be had, HTTP ${status} (${code}${messageOf(error)})`,
  );
}

/**
 * The connection failed, or the time was up, before the head of a reply had arrived, or in the middle of its
 * body.
 */
function withoutReply(error: unknown, request: FailedRequest): StoreError {
  const { fault, outcome, detail, cause } = connectionFailure(error);
  return failing(cause, request)(fault, outcome, detail);
}

/** Makes the failures of a request. */
function failing(error: unknown, request: FailedRequest) {
  return (fault: StoreFault, outcome: StoreError['outcome'], detail: string): StoreError =>
    failure(request, { fault, outcome, detail, ...(speaks(error) && { cause: error }) });
}

/** False for the errors that tell of the SDK's parser and not of the store: causes are printed. */
function speaks(error: unknown): boolean {
  return (
    textOf(error, 'Code') !== undefined ||
    textOf(error, 'code') !== undefined ||
    textOf(error, 'name')?.endsWith('ProviderError') === true
  );
}

function statusOf(error: unknown): number | undefined {
  const value = fieldOf(fieldOf(error, '$metadata'), 'httpStatusCode');
  return typeof value === 'number' ? value : undefined;
}
