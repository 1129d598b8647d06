import { callWithTimeout } from '../../base/abort.js';
import type { ObjectStoreOptions } from '../store-driver.js';
import { CreateSessionCommand, type S3Client } from './sdk.js';

/** When a session is renewed, and until when it is used, in milliseconds: S3 ends it after five minutes. */
const SESSION_MS = { renew: 240_000, max: 290_000 } as const;

/**
 * The sessions that a directory bucket wants, renewed in advance. The SDK's own provider gives one failure for
 * ever, and ends the process where a renewal fails. All calls wait for one request, so it has a timeout: the SDK
 * has none for the body of an answer.
 */
export function bucketSessions(
  client: Pick<S3Client, 'send'>,
  { clock, requestTimeoutMs: timeoutMs }: Pick<ObjectStoreOptions, 'clock' | 'requestTimeoutMs'>,
): S3Client['config']['s3ExpressIdentityProvider'] {
  const create = async (bucket: string | undefined) => {
    const { Credentials: session } = await callWithTimeout({ clock, timeoutMs }, (abortSignal) =>
      client.send(new CreateSessionCommand({ Bucket: bucket }), { abortSignal }),
    );
    const {
      AccessKeyId: accessKeyId,
      SecretAccessKey: secretAccessKey,
      SessionToken: sessionToken,
    } = session ?? {};
    if (accessKeyId && secretAccessKey && sessionToken) return { accessKeyId, secretAccessKey, sessionToken };
    throw new Error('the answer has no session: is this an S3 server?');
  };
  /** Asked for at that time, with the key of that id. */
  type Asked = { readonly by: string; readonly at: number; readonly session: ReturnType<typeof create> };
  let kept: Asked | undefined;
  let pending: Asked | undefined;
  const ask = (by: string, bucket: string | undefined): Asked => {
    const asked = { by, at: clock.monotonic(), session: create(bucket) };
    const end = (isKept: boolean) => {
      if (isKept) kept = asked;
      if (pending === asked) pending = undefined;
    };
    asked.session.then(
      () => end(true),
      () => end(false),
    );
    return asked;
  };
  return {
    getS3ExpressIdentity: ({ accessKeyId: by }, { Bucket }) => {
      const last = kept?.by === by ? kept : undefined;
      const ageMs = clock.monotonic() - (last?.at ?? Number.NEGATIVE_INFINITY);
      if (ageMs >= SESSION_MS.renew && pending?.by !== by) pending = ask(by, Bucket);
      const { session } = (ageMs < SESSION_MS.max ? last : pending) as Asked;
      return session;
    },
  };
}
