import { fieldOf, messageOf, textOf } from '../../base/fields.js';
import { isClockWrong } from '../http-times.js';
import type { StoreError, StoreFault } from '../lease-store.js';
import {
  ABSENCE,
  connectionFailure,
  type Failing,
  failing,
  isTimeout,
  networkErrors,
  refusal,
  type StoreRequest,
} from '../store-request.js';
import { CREDENTIAL_SOURCES, credentialSource, isWithoutCredentials } from './credentials.js';
import { bucketInEndpoint, unusedProxy } from './endpoint.js';

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
  { sent, status, headers }: ObservedReply,
): 'conflict' | 'absent' {
  const { operation } = request;
  const failedBy = failingBy(request);
  const failed = failedBy(error);
  if (!sent) throw beforeSending(error, request, failed);
  const isCutOff = isTimeout(error) || networkErrors(error).length > 0;
  if (status === undefined || (status < 300 && isCutOff))
    throw connectionFailure(error, failedBy, request.endpoint, {
      unknownHost: 'is the region right?',
      always: unusedProxy(),
    });
  if (status < 300) throw failed('rejected', 'unknown', `answered ${status}, but not as S3 does`);

  const code = textOf(error, 'Code') ?? '';
  const said = code === '' ? `HTTP ${status}` : `${code}${messageOf(error)}`;
  const refused = (cause: string) => failed('rejected', 'not-applied', cause);
  const denied = (cause: string) => failed('denied', 'not-applied', `access denied (${cause}`);
  const conditional = operation === 'create' || operation === 'replace';
  if (conditional && (status === 412 || (status === 409 && !UNDECIDED.includes(code)))) return 'conflict';
  if (status === 404) {
    if (code === 'NoSuchBucket') throw failed('missing', 'not-applied', 'bucket does not exist');
    const absence = code === 'NoSuchKey' && ABSENCE[operation];
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
    const needs = code === 'AccessDenied' ? `, needs ${NEEDS[operation]}` : '';
    const hint = bucketInEndpoint(request.url, request.endpoint);
    throw denied(`${code || `HTTP ${status}`}${needs})${messageOf(error)}${hint ? `; ${hint}` : ''}`);
  }
  throw refusal(failed, status, said, PASSING.includes(code));
}

/**
 * True when a concurrent write was under way, and the server judged no condition. S3 asks to send such a
 * request again: https://docs.aws.amazon.com/AmazonS3/latest/userguide/conditional-writes.html
 */
export function isUndecided(error: unknown, { status }: ObservedReply): boolean {
  return status === 409 && UNDECIDED.includes(textOf(error, 'Code') ?? '');
}

const UNDECIDED = ['ConditionalRequestConflict', 'OperationAborted'];
const PASSING = ['RequestTimeout', ...UNDECIDED];

/** The code of an answer of AWS that is an error: S3's, or the name that other services give it. */
export function codeOf(error: unknown): string | undefined {
  return textOf(error, 'Code') ?? (fieldOf(error, '$fault') ? textOf(error, 'name') : undefined);
}

/**
 * True when the server refused the request for the time in its signature, and sent another time with the
 * refusal. Such a request is certainly not applied: signatures are checked first. The SDK signs with the
 * server's time from then on, so that the same call succeeds.
 */
export function teachesTime(error: unknown, { status, headers, signedAt }: ObservedReply): boolean {
  const isRefused = /^(RequestTimeTooSkewed|InvalidSignatureException)$/.test(codeOf(error) ?? '');
  if (status === undefined || status < 400 || !isRefused) return false;
  const signed = signedAt?.replace(/^(\d{4})(\d\d)(\d\d)T(\d\d)(\d\d)(\d\d)Z$/, '$1-$2-$3T$4:$5:$6Z') ?? '';
  return isClockWrong(headers.date, Date.parse(signed));
}

/**
 * True when the credentials were refused, and not what they may do. Such a request is certainly not applied.
 */
export function refusesCredentials(error: unknown): boolean {
  return CREDENTIAL_CODES.includes(codeOf(error) ?? '');
}

/** `InvalidTokenId` is MinIO's; the exceptions are DynamoDB's. */
const CREDENTIAL_CODES = [
  'ExpiredTokenException',
  'UnrecognizedClientException',
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

/** By its name, or by that of an access point. */
export const DIRECTORY_BUCKET = /^(?:s3:\/\/)?[^/]*--xa?-s3(\/|$)/;

const credentialHint = (profile = process.env.AWS_PROFILE) =>
  profile ? `AWS_PROFILE is ${profile}: is that profile in ~/.aws/config?` : CREDENTIAL_SOURCES;

/** The SDK failed on the way: nearly always over the credentials, which it fetches with the first request. */
export function beforeSending(
  error: unknown,
  { url }: Pick<StoreRequest, 'url'>,
  failing: Failing,
): StoreError {
  const name = textOf(error, 'name') ?? '';
  const message = messageOf(error);
  const failed = (fault: StoreFault, detail: string) => failing(fault, 'not-applied', detail);
  if (isWithoutCredentials(error))
    return failed('denied', `no AWS credentials found (${credentialHint()})${message}`);
  const isDirectory = DIRECTORY_BUCKET.test(url);
  const noAnswer = `no answer from the source of the credentials (${credentialSource()})`;
  if (isTimeout(error) || networkErrors(error).length > 0)
    return failed('unreachable', `${isDirectory ? 'not sent' : noAnswer}${message}`);
  const status = fieldOf(fieldOf(error, '$metadata'), 'httpStatusCode');
  if (typeof status !== 'number') return failed('rejected', `not sent${message}`);
  const isDown = status >= 500;
  if (!isDirectory) {
    const said = `${name}, HTTP ${status}`;
    return isDown
      ? failed('unavailable', `${noAnswer}: ${said}`)
      : failed('denied', `no AWS credentials from ${credentialSource()} (${said})${message}`);
  }
  // A bucket of S3 Express is asked for a session first, by another request of the SDK.
  const code = textOf(error, 'Code') ?? name;
  if (code === 'NoSuchBucket') return failed('missing', 'bucket does not exist');
  if (status === 401 || status === 403)
    return failed('denied', `access denied (${code}, needs s3express:CreateSession)${message}`);
  const what = `no session created, HTTP ${status} (${code}${message})`;
  return failed(isDown ? 'unavailable' : 'rejected', what);
}

/** The failures of a request, without the errors that speak of the SDK's parser: causes are printed. */
function failingBy(request: StoreRequest): (error: unknown) => Failing {
  return (error) => {
    const speaks = (textOf(error, 'Code') ?? textOf(error, 'code')) || isWithoutCredentials(error);
    return failing(request, speaks ? error : undefined);
  };
}

/**
 * Where {@link ReplyObserver.middleware} goes: the lowest place of this step is next to the HTTP client,
 * inside the parsing of the reply. The observer of a command that is sent again takes the place of the first
 * one.
 */
export const OBSERVER_PLACE = {
  step: 'deserialize',
  priority: 'low',
  name: 'observeReply',
  override: true,
} as const;

/** What was seen of one request on the wire, below everything that the SDK makes of it. */
export type ObservedReply = Readonly<
  Pick<ReplyObserver, 'sent' | 'status' | 'headers' | 'signedAt' | 'signedBy'>
>;

/**
 * Watches one request. The age of an object needs the `Date` header, which the SDK's output leaves out; and
 * whether a failed write may have been applied is known only here.
 */
export class ReplyObserver {
  /** False while nothing can have left this process: the request had not been handed to the HTTP client. */
  sent = false;
  /** The HTTP status; undefined until the head of a reply has arrived. */
  status: number | undefined;
  /** Lower-case names. */
  headers: Readonly<Record<string, string | undefined>> = {};
  /**
   * The time that the request was signed with, as it was sent: `20261121T120000Z`; undefined when it was not
   * signed by SigV4.
   */
  signedAt: string | undefined;
  /**
   * The id of the access key that the request was signed with, as it was sent; undefined when it was not
   * signed.
   */
  signedBy: string | undefined;

  /**
   * @param signal a request that has not been sent when this aborts is never sent, so `sent` stays true to
   * its word
   */
  constructor(private readonly signal: AbortSignal) {}

  /** For the middleware stack of the one command that is watched, at {@link OBSERVER_PLACE}. */
  readonly middleware =
    <Input extends { request: unknown }, Result extends { response: unknown }>(
      next: (input: Input) => Promise<Result>,
    ) =>
    async (input: Input): Promise<Result> => {
      this.signal.throwIfAborted();
      const request = input.request as { readonly headers: Readonly<Record<string, string | undefined>> };
      this.signedAt = request.headers['x-amz-date'];
      this.signedBy = /Credential=([^/]+)\//.exec(request.headers.authorization ?? '')?.[1];
      this.sent = true;
      const result = await next(input);
      const { statusCode, headers } = result.response as {
        statusCode: number;
        headers: Record<string, string>;
      };
      this.headers = { ...headers };
      this.status = statusCode;
      // The SDK throws the whole reply away over a date that it cannot parse; the age is computed from the
      // header instead.
      delete headers['last-modified'];
      return result;
    };
}
