/** What was seen of one request on the wire, below everything that the SDK makes of it. */
export interface ObservedReply {
  /** False while nothing can have left this process: the request had not been handed to the HTTP client. */
  readonly sent: boolean;
  /** The HTTP status; undefined until the head of a reply has arrived. */
  readonly status: number | undefined;
  /** Lower-case names. */
  readonly headers: Readonly<Record<string, string | undefined>>;
}

/** Where {@link ReplyObserver.middleware} goes: the lowest place of this step is next to the HTTP client, inside the parsing of the reply. */
export const OBSERVER_PLACE = { step: 'deserialize', priority: 'low', name: 'observeReply' } as const;

/**
 * Watches one request. The age of an object needs the `Date` header, which the SDK's output leaves out; and whether a
 * failed write may have been applied is known only here.
 */
export class ReplyObserver implements ObservedReply {
  sent = false;
  status: number | undefined;
  headers: Readonly<Record<string, string | undefined>> = {};
  readonly #signal: AbortSignal;

  /** @param signal a request that has not been sent when this aborts is never sent, so `sent` stays true to its word */
  constructor(signal: AbortSignal) {
    this.#signal = signal;
  }

  /** For the middleware stack of the one command that is watched, at {@link OBSERVER_PLACE}. */
  readonly middleware =
    <Request, Result extends { response: unknown }>(next: (request: Request) => Promise<Result>) =>
    async (request: Request): Promise<Result> => {
      this.#signal.throwIfAborted();
      this.sent = true;
      const result = await next(request);
      const { statusCode, headers } = result.response as { statusCode: number; headers: Record<string, string> };
      this.headers = { ...headers };
      this.status = statusCode;
      // The SDK throws the whole reply away over a date that it cannot parse; the age is computed from the header instead.
      delete headers['last-modified'];
      return result;
    };
}
