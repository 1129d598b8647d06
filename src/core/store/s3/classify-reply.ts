import { messageOf, textOf } from '../../base/fields.js';
import { failingBy, unanswered } from '../aws/failures.js';
import { CREDENTIAL_CODES, type ObservedReply, UNDECIDED } from '../aws/observed-reply.js';
import type { StoreError } from '../lease-store.js';
import {
  ABSENCE,
  type ByOperation,
  type Failing,
  isConditional,
  refusal,
  type StoreRequest,
} from '../store-request.js';
import { bucketInEndpoint } from './endpoint.js';

/**
 * Says what a failed S3 request means, by the HTTP status, S3's error code and the operating system's error
 * code; never by the text. This is the only place that knows these.
 *
 * @returns `conflict` for `create` and `replace` only, `absent` for `read` and `discard` only
 * @throws {StoreError} for everything else
 */
export function classifyReply(
  error: unknown,
  request: StoreRequest,
  reply: ObservedReply,
): 'conflict' | 'absent' {
  const { operation } = request;
  const failed = failingBy(request)(error);
  const session = DIRECTORY_BUCKET.test(request.url) ? ofSession(error, failed) : undefined;
  const lost = unanswered(error, request, reply, session);
  if (lost) throw lost;
  const { status = 0, headers } = reply;
  if (status < 300) throw failed('rejected', 'unknown', `answered ${status}, but not as S3 does`);

  const code = textOf(error, 'Code') ?? '';
  const said = code === '' ? `HTTP ${status}` : `${code}${messageOf(error)}`;
  const refused = (cause: string) => failed('rejected', 'not-applied', cause);
  const denied = (cause: string) => failed('denied', 'not-applied', `access denied (${cause}`);
  const conditional = isConditional(request);
  if (conditional && (status === 412 || (status === 409 && !UNDECIDED.includes(code)))) return 'conflict';
  if (status === 404) {
    if (code === 'NoSuchBucket') throw failed('missing', 'not-applied', 'bucket does not exist');
    const absence = /^NoSuch(Key|Version)$/.test(code) && ABSENCE[operation];
    if (absence) return absence;
    const misplaced =
      operation === 'list' && bucketInEndpoint(request.url, request.endpoint, code === 'NoSuchKey');
    if (misplaced)
      throw failed('rejected', 'unknown', `${misplaced} (a listing was answered ${code || 'HTTP 404'})`);
    // A gateway in front of the store says 404 as well, and must not make a lease look as if it were gone.
    const detail = `answered ${said}, which does not say what is missing: is this an S3 server?`;
    throw failed('rejected', 'unknown', detail);
  }
  if (code === 'RequestTimeTooSkewed') throw denied(`${said}): the clock of this host is wrong`);
  if (status === 304) {
    const what = conditional ? 'where S3 answers 412 or 200' : 'although it was not asked whether it was';
    throw refused(
      `answered HTTP 304, not modified, ${what}: a cache stands in between, or this is no S3 server`,
    );
  }
  if (
    status < 400 ||
    code === 'AuthorizationHeaderMalformed' ||
    code === 'IllegalLocationConstraintException'
  ) {
    const region = headers['x-amz-bucket-region'] ?? textOf(error, 'Region');
    throw refused(
      `${region === undefined ? 'wrong region or endpoint' : `the bucket is in region ${region}`} (${said})`,
    );
  }
  if (status === 401 || status === 403 || CREDENTIAL_CODES.includes(code)) {
    const needs = code === 'AccessDenied' ? `, needs ${request.needs ?? NEEDS[operation]}` : '';
    const hint = bucketInEndpoint(request.url, request.endpoint);
    throw denied(`${code || `HTTP ${status}`}${needs})${messageOf(error)}${hint ? `; ${hint}` : ''}`);
  }
  throw refusal(failed, status, said, PASSING.includes(code));
}

const PASSING = ['RequestTimeout', ...UNDECIDED];

/** The permission that each operation needs. */
const NEEDS: ByOperation<string> = {
  read: 's3:GetObject',
  list: 's3:ListBucket',
  create: 's3:PutObject',
  replace: 's3:PutObject',
  discard: 's3:DeleteObject',
};

/** By its name, or by that of an access point. */
export const DIRECTORY_BUCKET = /^(?:s3:\/\/)?[^/]*--xa?-s3(\/|$)/;

/** A bucket of S3 Express is asked for a session first, by another request of the SDK. */
const ofSession =
  (error: unknown, failed: Failing) =>
  (status: number, name: string): StoreError => {
    const code = textOf(error, 'Code') ?? name;
    const message = messageOf(error);
    if (code === 'NoSuchBucket') return failed('missing', 'not-applied', 'bucket does not exist');
    if (status === 401 || status === 403)
      return failed(
        'denied',
        'not-applied',
        `access denied (${code}, needs s3express:CreateSession)${message}`,
      );
    const what = `no session created, HTTP ${status} (${code}${message})`;
    return failed(status >= 500 ? 'unavailable' : 'rejected', 'not-applied', what);
  };
