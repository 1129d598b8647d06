import type { S3Client } from '@aws-sdk/client-s3';
import { orAborted } from '../../base/abort.js';
import { type ObjectStoreOptions, StoreDriver } from '../store-driver.js';
import { givenUp, type Operation, type StoreRequest, withinRequestTime } from '../store-request.js';
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

interface AwsOptions extends Omit<ObjectStoreOptions, 'prefix'> {
  readonly client: AwsAccount;
}

/** What the stores of AWS share: how a request is made, and what has not answered. */
export abstract class AwsStoreDriver extends StoreDriver {
  constructor(
    url: string,
    prefix: string,
    private readonly access: AwsOptions,
  ) {
    super(url, prefix, access.endpoint);
  }

  noAnswer(within: string): string {
    const source = this.access.client.awaitedSource?.();
    return source === undefined
      ? `no answer ${within}${unusedProxy()}`
      : `no answer from the source of the credentials (${source}) ${within}`;
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
  protected call<Output, Request extends StoreRequest<Operation>>(
    request: Request,
    command: Observable,
    send: (options: { abortSignal: AbortSignal }) => Promise<Output>,
    classify: (error: unknown, request: Request, reply: ObservedReply) => 'conflict' | 'absent',
  ): Promise<{ readonly output: Output; readonly reply: ObservedReply } | undefined> {
    const { signal } = request;
    return withinRequestTime(this.access, signal, async (limit) => {
      let reply = new ReplyObserver(limit);
      // The SDK looks at the signal only once it has credentials, and not while it reads a body: this covers
      // the rest.
      const attempt = async (pausesMs = UNDECIDED_PAUSES_MS): Promise<Output> => {
        command.middlewareStack.add(reply.middleware, OBSERVER_PLACE);
        try {
          return await orAborted(send({ abortSignal: limit }), limit);
        } catch (error) {
          const [pauseMs, ...others] = pausesMs;
          if (pauseMs === undefined || !isUndecided(error, reply)) throw error;
          reply = new ReplyObserver(limit);
          await this.access.clock.sleep(pauseMs, limit);
          return attempt(others);
        }
      };
      try {
        signal?.throwIfAborted();
        const output = await attempt().catch(async (error: unknown) => {
          const isAnother =
            !limit.aborted &&
            (teachesTime(error, reply) || (await this.#hasNewCredentials(error, reply, limit)));
          if (!isAnother) throw error;
          reply = new ReplyObserver(limit);
          return attempt();
        });
        return { output, reply };
      } catch (error) {
        if (signal?.aborted) throw givenUp(request, signal.reason, reply.sent);
        // The reason says more than the SDK's own "request aborted", and less than an answer of the store.
        const isCutOff = limit.aborted && codeOf(error) === undefined;
        classify(isCutOff ? limit.reason : error, request, reply);
        return undefined;
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
