import { fieldOf, textOf } from '../../base/fields.js';
import { isClockWrong } from '../http-times.js';

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

/** `InvalidTokenId` is MinIO's. Services other than S3 answer with exceptions. */
export const CREDENTIAL_CODES = [
  'ExpiredTokenException',
  'UnrecognizedClientException',
  'ExpiredToken',
  'InvalidToken',
  'InvalidTokenId',
  'TokenRefreshRequired',
  'InvalidAccessKeyId',
  'SignatureDoesNotMatch',
];

/**
 * True when a concurrent write was under way, and the server judged no condition. S3 asks to send such a
 * request again: https://docs.aws.amazon.com/AmazonS3/latest/userguide/conditional-writes.html
 */
export function isUndecided(error: unknown, { status }: ObservedReply): boolean {
  return status === 409 && UNDECIDED.includes(codeOf(error) ?? '');
}

export const UNDECIDED = ['ConditionalRequestConflict', 'OperationAborted'];
