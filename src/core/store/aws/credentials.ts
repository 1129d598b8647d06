import type { S3Client } from '@aws-sdk/client-s3';
import { LateSignal, withTimeout } from '../../base/abort.js';
import type { Clock } from '../../base/clock.js';
import { textOf } from '../../base/fields.js';

/** Gives credentials, and keeps them until they expire. */
export type CredentialChain = S3Client['config']['credentials'];

interface Answer {
  readonly credentials: Awaited<ReturnType<CredentialChain>>;
  readonly chain: CredentialChain;
}

/**
 * How long each request to a source may be without an answer before the next one is made next to it, in
 * milliseconds: twice as long each time. Two that hang leave time for a third within the timeout of a request
 * to the store. Each may be a program of the user's, so there are few.
 */
const ASKED_AGAIN_MS = { first: 1_000, max: 4_000, attempts: 9 } as const;
/** Failures of the SDK's own requests to a source that gives no answer, or 5xx, take at least so long. */
const SILENT_MS = 1_000;

/**
 * The credentials of the AWS default chain. The SDK waits for ever for the credentials endpoint of a
 * container, and for a program or single sign-on that hangs; and it gives up the instance metadata service
 * after one attempt. So a source that does not answer is asked again here, by a new chain.
 */
export class RepeatedCredentials {
  #chain: CredentialChain;
  readonly #asking = new Map<boolean, Promise<Answer['credentials']>>();
  readonly #closing = new LateSignal();

  constructor(
    private readonly newChain: () => CredentialChain,
    private readonly clock: Clock,
  ) {
    this.#chain = newChain();
  }

  /** Whether an answer is awaited. */
  get isAwaited(): boolean {
    return this.#asking.size > 0;
  }

  /** Requests of several callers are one request. With `forceRefresh` credentials that are kept do not count. */
  readonly provide: CredentialChain = (options) => {
    const forced = options?.forceRefresh === true;
    const asking =
      this.#asking.get(forced) ?? this.#ask(options).finally(() => void this.#asking.delete(forced));
    this.#asking.set(forced, asking);
    return asking;
  };

  /** Asks no more. */
  close(): void {
    this.#closing.abort(new Error('the store is closed'));
  }

  async #ask(options: Parameters<CredentialChain>[0]): Promise<Answer['credentials']> {
    const { first, max, attempts } = ASKED_AGAIN_MS;
    const asked: Promise<Answer>[] = [];
    for (let number = 1; number <= attempts; number += 1) {
      asked.push(this.#answer(number === 1 ? this.#chain : this.newChain(), options));
      const ms = Math.min(max, first * 2 ** (number - 1));
      const answer = await withTimeout(this.clock, ms, Promise.race(asked), this.#closing.signal);
      if (answer !== undefined) {
        this.#chain = answer.chain;
        return answer.credentials;
      }
    }
    throw new DOMException('no answer to any request', 'TimeoutError');
  }

  /** Stays pending where the source is silent, also if the SDK has given it up. */
  async #answer(chain: CredentialChain, options: Parameters<CredentialChain>[0]): Promise<Answer> {
    const begun = this.clock.monotonic();
    try {
      return { credentials: await chain(options), chain };
    } catch (error) {
      const isSilent = this.clock.monotonic() - begun >= SILENT_MS && !process.env.AWS_PROFILE;
      if (isSilent && isWithoutCredentials(error)) return new Promise(() => undefined);
      throw error;
    }
  }
}

/** Whether no source of the chain has given credentials. */
export function isWithoutCredentials(error: unknown): boolean {
  return /ProviderError$/.test(textOf(error, 'name') ?? '');
}

/** Where credentials may come from, as an advice. */
export const CREDENTIAL_SOURCES =
  'give the task a role, or set AWS_PROFILE, or AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY';

/** What the chain asks, by the environment, for messages: the SDK does not say. */
export function credentialSource(env: NodeJS.ProcessEnv = process.env): string {
  if (env.AWS_PROFILE) return `profile ${env.AWS_PROFILE}`;
  if (env.AWS_WEB_IDENTITY_TOKEN_FILE) return 'AWS STS, with the AWS_WEB_IDENTITY_TOKEN_FILE';
  if (env.AWS_CONTAINER_CREDENTIALS_RELATIVE_URI)
    return 'the AWS_CONTAINER_CREDENTIALS_RELATIVE_URI at 169.254.170.2';
  const uri = env.AWS_CONTAINER_CREDENTIALS_FULL_URI;
  if (uri)
    return `the AWS_CONTAINER_CREDENTIALS_FULL_URI${URL.canParse(uri) ? ` at ${new URL(uri).host}` : ''}`;
  const isDisabled = env.AWS_EC2_METADATA_DISABLED && env.AWS_EC2_METADATA_DISABLED !== 'false';
  return isDisabled
    ? 'the default profile'
    : `the instance metadata service, IMDS, which in a container needs a hop limit of 2; or ${CREDENTIAL_SOURCES}`;
}
