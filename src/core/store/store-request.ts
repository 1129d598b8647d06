import { timeoutSignal } from '../base/abort.js';
import type { Clock } from '../base/clock.js';
import { bounded } from './bounded.js';
import { StoreError, type StoreFault, type WriteOptions } from './lease-store.js';

/** What each operation is called in messages. */
const DOING = {
  read: 'reading',
  list: 'listing',
  create: 'creating',
  replace: 'replacing',
  discard: 'removing',
  watch: 'watching',
  authenticate: 'authenticating',
  examine: 'examining the servers',
} as const;

/** Any operation of a driver. */
export type Operation = keyof typeof DOING;

/** One request to a store, with the options of its call. Most stores have only operations on objects. */
export interface StoreRequest<Of = Exclude<Operation, 'watch' | 'authenticate' | 'examine'>>
  extends WriteOptions {
  readonly operation: Of;
  /** The store, as its user wrote it. */
  readonly url: string;
  /** The object below the prefix; undefined for a request that is not about one object. */
  readonly key?: string | undefined;
  /** The server, where the user has named one. */
  readonly endpoint?: string | undefined;
}

/** The store and what a request does, as the beginning of a message. */
export function attempt({ operation, url, key }: StoreRequest<Operation>): string {
  return `${url}: ${DOING[operation]}${key === undefined ? '' : ` ${key}`}`;
}

/** Makes an error from what is known of a failure. */
export type Failing = (fault: StoreFault, outcome: StoreError['outcome'], detail: string) => StoreError;

/** Makes the failures of a request. Give `cause` only if it says more than the detail: causes are printed. */
export function failing(request: StoreRequest<Operation>, cause?: unknown): Failing {
  return (fault, outcome, detail) => {
    // A missing bucket is the same for every operation.
    const what = fault === 'missing' ? request.url : attempt(request);
    return new StoreError(`${what}: ${detail}`, { fault, outcome, cause });
  };
}

/** A reply that no store of this kind sends. */
export function senseless(request: StoreRequest<Operation>, answer: string): StoreError {
  return failing(request)('rejected', 'unknown', `answered ${answer}`);
}

/** What a success must contain. @throws {StoreError} if it is missing */
export function required(request: StoreRequest, value: string | undefined, missing: string): string {
  if (value) return value;
  throw senseless(request, `success without ${missing}`);
}

/** The failure of a request that its caller gave up: a write of unknown outcome, unless it was not sent. */
export function givenUp(request: StoreRequest<Operation>, reason: unknown, isSent: boolean): StoreError {
  return failing(request, reason)('unreachable', isSent ? 'unknown' : 'not-applied', 'given up');
}

/** Refuses to remove anything but a scratch object of a probe. @throws {StoreError} */
export function checkScratch(url: string, key: string): void {
  if (key.startsWith('probe-')) return;
  throw new StoreError(`${url}: ${key} is not a scratch object and is not removed`, {
    fault: 'rejected',
    outcome: 'not-applied',
  });
}

/** The limit of each request. */
interface RequestLimits {
  readonly clock: Clock;
  /** Milliseconds. */
  readonly requestTimeoutMs: number;
}

/** Makes a request, and gives it up for lack of time or by its signal. @throws {StoreError} as {@link bounded} does */
export function boundedRequest<T>(
  { clock, requestTimeoutMs: timeoutMs }: RequestLimits,
  request: StoreRequest,
  send: (signal: AbortSignal) => Promise<T>,
): Promise<T> {
  const bounds = { clock, timeoutMs, signal: request.signal, what: attempt(request) };
  return bounded(bounds, ({ signal }) => send(signal));
}

/** Calls `work` with a signal that aborts as `signal` does, or with a `TimeoutError` when the time is over. */
export async function withinRequestTime<T>(
  { clock, requestTimeoutMs }: RequestLimits,
  signal: AbortSignal | undefined,
  work: (limit: AbortSignal) => Promise<T>,
): Promise<T> {
  const late = () => new DOMException(`no answer within ${requestTimeoutMs} ms`, 'TimeoutError');
  const limit = timeoutSignal(clock, requestTimeoutMs, late, signal);
  try {
    return await work(limit.signal);
  } finally {
    limit.release();
  }
}
