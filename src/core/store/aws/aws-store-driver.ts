import type { S3Client } from '@aws-sdk/client-s3';
import { orAborted } from '../../base/abort.js';
import { type ObjectStoreOptions, StoreDriver } from '../store-driver.js';
import { givenUp, type StoreRequest, withinRequestTime } from '../store-request.js';
import { unusedProxy } from './failures.js';
import {
  codeOf,
  isUndecided,
  OBSERVER_PLACE,
  type ObservedReply,
  ReplyObserver,
  refusesCredentials,
  teachesTime,
} from './observed-reply.js';

/** The pauses before a write is sent again that S3 did not judge, in milliseconds. */
const UNDECIDED_PAUSES_MS: readonly number[] = [50, 100, 200];

/** A command, as far as watching its reply goes. */
interface Observable {
  readonly middlewareStack: {
    add(middleware: ReplyObserver['middleware'], place: typeof OBSERVER_PLACE): void;
  };
}

/** What a store has of the SDK's client. */
export interface AwsAccount {
  /** Its credentials. With `forceRefresh` their source is asked again. */
  readonly config?: Pick<S3Client['config'], 'credentials'>;
  /** The source of the credentials, for messages, while its answer is awaited. */
  awaitedSource?(): string | undefined;
  /** Closes its connections. */
  destroy(): void;
}

/** What the stores of AWS share: how a request is made, and what has not answered. */
export abstract class AwsStoreDriver extends StoreDriver {
  constructor(
    url: string,
    prefix: string,
    private readonly access: ObjectStoreOptions & { readonly client: AwsAccount },
  ) {
    super(url, prefix, access.endpoint);
  }

  noAnswer(within: string): string {
    const source = this.access.client.awaitedSource?.();
    return source === undefined
      ? `no answer ${within}${unusedProxy()}`
      : `no usable answer from the source of the credentials (${source}) ${within}`;
  }

  async close(): Promise<void> {
    this.access.client.destroy();
  }

  /**
   * One request, limited in time, unless it has to be signed again.
   *
   * @param classify what a failure means
   * @returns undefined for a definite answer that came in the form of an error
   * @throws {StoreError}
   */
  protected call<Output>(
    request: StoreRequest,
    command: Observable,
    send: (options: { abortSignal: AbortSignal }) => Promise<Output>,
    classify: (error: unknown, request: StoreRequest, reply: ObservedReply) => 'conflict' | 'absent',
  ): Promise<{ readonly output: Output; readonly reply: ObservedReply } | undefined> {
    const { signal } = request;
    return withinRequestTime(this.access, signal, async (limit) => {
      const pausesMs = [...UNDECIDED_PAUSES_MS];
      for (let pauseMs = 0, isSignedAgain = false; ; ) {
        const reply = new ReplyObserver(limit);
        try {
          signal?.throwIfAborted();
          if (pauseMs > 0) await this.access.clock.sleep(pauseMs, limit);
          command.middlewareStack.add(reply.middleware, OBSERVER_PLACE);
          // The SDK looks at the signal only once it has credentials, and not while it reads a body: this covers
          // the rest.
          return { output: await orAborted(send({ abortSignal: limit }), limit), reply };
        } catch (error) {
          pauseMs = (isUndecided(error, reply) && pausesMs.shift()) || 0;
          if (pauseMs > 0) continue;
          isSignedAgain =
            !isSignedAgain &&
            !limit.aborted &&
            (teachesTime(error, reply) || (await this.#hasNewCredentials(error, reply, limit)));
          if (isSignedAgain) continue;
          if (signal?.aborted) throw givenUp(request, signal.reason, reply.sent);
          // The reason says more than the SDK's own "request aborted", and less than an answer of the store.
          const isCutOff = limit.aborted && codeOf(error) === undefined;
          classify(isCutOff ? limit.reason : error, request, reply);
          return undefined;
        }
      }
    });
  }

  /**
   * Where the credentials of a request were refused, asks their source again, such as a file that may have
   * been rewritten.
   */
  async #hasNewCredentials(
    error: unknown,
    { signedBy }: ObservedReply,
    signal: AbortSignal,
  ): Promise<boolean> {
    const { config } = this.access.client;
    if (config === undefined || !refusesCredentials(error)) return false;
    try {
      const { accessKeyId } = await orAborted(config.credentials({ forceRefresh: true }), signal);
      return accessKeyId !== signedBy;
    } catch {
      // The store's refusal says more.
      return false;
    }
  }
}
