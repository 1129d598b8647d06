import { CUT_MS, parseHttpDate } from '../http-date.js';
import type { Interval } from '../lease-store.js';

/**
 * Where {@link ReplyObserver.middleware} goes: the lowest place of this step is next to the HTTP client, inside the parsing of the reply.
 * The observer of a command that is sent again takes the place of the first one.
 */
export const OBSERVER_PLACE = { step: 'deserialize', priority: 'low', name: 'observeReply', override: true } as const;

/** What was seen of one request on the wire, below everything that the SDK makes of it. */
export type ObservedReply = Readonly<Pick<ReplyObserver, 'sent' | 'status' | 'headers' | 'signedAt'>>;

/**
 * Watches one request. The age of an object needs the `Date` header, which the SDK's output leaves out; and whether a
 * failed write may have been applied is known only here.
 */
export class ReplyObserver {
  /** False while nothing can have left this process: the request had not been handed to the HTTP client. */
  sent = false;
  /** The HTTP status; undefined until the head of a reply has arrived. */
  status: number | undefined;
  /** Lower-case names. */
  headers: Readonly<Record<string, string | undefined>> = {};
  /** The time that the request was signed with, as it was sent: `20261121T120000Z`; undefined when it was not signed by SigV4. */
  signedAt: string | undefined;

  /** @param signal a request that has not been sent when this aborts is never sent, so `sent` stays true to its word */
  constructor(private readonly signal: AbortSignal) {}

  /** For the middleware stack of the one command that is watched, at {@link OBSERVER_PLACE}. */
  readonly middleware =
    <Input extends { request: unknown }, Result extends { response: unknown }>(next: (input: Input) => Promise<Result>) =>
    async (input: Input): Promise<Result> => {
      this.signal.throwIfAborted();
      const request = input.request as { readonly headers: Readonly<Record<string, string | undefined>> };
      this.signedAt = request.headers['x-amz-date'];
      this.sent = true;
      const result = await next(input);
      const { statusCode, headers } = result.response as { statusCode: number; headers: Record<string, string> };
      this.headers = { ...headers };
      this.status = statusCode;
      // The SDK throws the whole reply away over a date that it cannot parse; the age is computed from the header instead.
      delete headers['last-modified'];
      return result;
    };
}

const UNKNOWN_AGE: Interval = { min: 0, max: Number.POSITIVE_INFINITY };

/**
 * How old an object was when a reply was formed, from the `Date` and `Last-Modified` headers of that same reply, in milliseconds.
 * Both are cut to whole seconds, so their difference is off by less than one second either way. Unknown is `{ min: 0, max: Infinity }`.
 */
export function ageFromHeaders(dateHeader: string | undefined, lastModifiedHeader: string | undefined): Interval {
  const date = parseHttpDate(dateHeader);
  const modified = parseHttpDate(lastModifiedHeader);
  return date === undefined || modified === undefined ? UNKNOWN_AGE : ageBetween(date, modified, CUT_MS);
}

/**
 * How old a listed object was when the page was formed. Some servers list milliseconds, others whole seconds written as
 * `.000`: a time without a fraction is taken as cut.
 */
export function ageFromListing(dateHeader: string | undefined, lastModified: Date | undefined): Interval {
  const date = parseHttpDate(dateHeader);
  const modified = lastModified?.getTime();
  if (date === undefined || modified === undefined || Number.isNaN(modified)) return UNKNOWN_AGE;
  return ageBetween(date, modified, modified % 1000 === 0 ? CUT_MS : 0);
}

function ageBetween(date: number, modified: number, modifiedCut: number): Interval {
  // A server whose times contradict each other (written after it was read) has told nothing that a take-over could rest on: min is 0.
  return { min: Math.max(0, date - modified - modifiedCut), max: Math.max(CUT_MS, date - modified + CUT_MS) };
}
