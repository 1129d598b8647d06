import { orAborted, timeoutSignal } from '../base/abort.js';
import type { Clock } from '../base/clock.js';
import { messageOf, textOf } from '../base/fields.js';
import { type LeaseStore, StoreError, type StoreFault, type WriteOptions } from './lease-store.js';

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

/** Any operation of a driver. Most stores have only operations on objects. */
export type Operation = keyof typeof DOING;

/** What some operations have. */
export type ByOperation<T> = Readonly<Partial<Record<Operation, T>>>;

/** One request to a store, with the options of its call. */
export interface StoreRequest extends WriteOptions {
  readonly operation: Operation;
  /** The store, as its user wrote it. */
  readonly url: string;
  /** The object below the prefix; undefined for a request that is not about one object. */
  readonly key?: string | undefined;
  /** The server, where the user has named one. */
  readonly endpoint?: string | undefined;
  /** The permission, where it is not the usual one of the operation. */
  readonly needs?: string;
}

/** The store and what a request does, as the beginning of a message. */
function attempt({ operation, url, key }: StoreRequest): string {
  return `${url}: ${DOING[operation]}${key === undefined ? '' : ` ${key}`}`;
}

/** Makes an error from what is known of a failure. */
export type Failing = (fault: StoreFault, outcome: StoreError['outcome'], detail: string) => StoreError;

/** Makes the failures of a request. Give `cause` only if it says more than the detail: causes are printed. */
export function failing(request: StoreRequest, cause?: unknown): Failing {
  return (fault, outcome, detail) => {
    // A missing bucket is the same for every operation.
    const what = fault === 'missing' ? request.url : attempt(request);
    return new StoreError(`${what}: ${detail}`, { fault, outcome, cause });
  };
}

/** A reply that no store of this kind sends. */
export function senseless(request: StoreRequest, answer: string): StoreError {
  return failing(request)('rejected', 'unknown', `answered ${answer}`);
}

/** What a success must contain. @throws {StoreError} if it is missing */
export function required(request: StoreRequest, value: string | undefined, missing: string): string {
  if (value) return value;
  throw senseless(request, `success without ${missing}`);
}

/** The failure of a request that its caller gave up: a write of unknown outcome, unless it was not sent. */
export function givenUp(request: StoreRequest, reason: unknown, isSent: boolean): StoreError {
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

/** The limits at one of several servers: a silent one leaves the others a part of the time. */
export function atOneOf(servers: number, { clock, requestTimeoutMs }: RequestLimits): RequestLimits {
  return { clock, requestTimeoutMs: Math.ceil(requestTimeoutMs / servers) };
}

/** How long one call of a store may take, and what to say when it takes longer. */
export interface Bounds {
  readonly clock: Clock;
  /** Milliseconds. */
  readonly timeoutMs: number;
  /** The whole time of which `timeoutMs` is left, for messages, in milliseconds. @default `timeoutMs` */
  readonly wholeMs?: number | undefined;
  /** See {@link LeaseStore.noAnswer}. */
  readonly noAnswer?: LeaseStore['noAnswer'];
  readonly signal?: AbortSignal | undefined;
  /** What is being done where, as the beginning of an error's message. */
  readonly what: string;
}

/**
 * Makes a call of a store, and gives it up for lack of time or by its signal, at once, even where the driver
 * underneath is stuck.
 *
 * @throws {StoreError} that of the store; one of unknown outcome for a call that was given up or failed in
 * any other way; one of outcome not-applied for a call that was not begun since `signal` had aborted
 */
export async function bounded<T>(
  {
    clock,
    timeoutMs,
    wholeMs = timeoutMs,
    noAnswer = (within) => `no answer ${within}`,
    signal,
    what,
  }: Bounds,
  run: (options: { readonly signal: AbortSignal }) => Promise<T>,
): Promise<T> {
  const failed = (detail: string, outcome: StoreError['outcome'], cause?: unknown) =>
    new StoreError(`${what}: ${detail}`, { fault: 'unreachable', outcome, cause });
  if (signal?.aborted) throw failed('not begun', 'not-applied', signal.reason);
  const ms = Math.round(timeoutMs);
  const within =
    wholeMs > timeoutMs ? `within the last ${ms} of ${Math.round(wholeMs)} ms` : `within ${ms} ms`;
  const call = timeoutSignal(clock, timeoutMs, () => failed(noAnswer(within), 'unknown'), signal);
  try {
    return await orAborted(run({ signal: call.signal }), call.signal);
  } catch (error) {
    if (signal?.aborted && error === signal.reason) throw failed('given up', 'unknown', error);
    throw error instanceof StoreError ? error : failed('failed', 'unknown', error);
  } finally {
    call.release();
  }
}

/**
 * The failure of a request whose connection failed, or whose time was over, before the head of a reply had
 * arrived or in the middle of its body: by the codes of the operating system and of Node.
 *
 * @param failing makes the failures with the cause that says most
 * @param endpoint the option, where it is given
 * @param hints what may be wrong: where the name of the server does not exist and no endpoint is given, and
 * where no server answers. The second begins with a blank
 */
export function connectionFailure(
  error: unknown,
  failing: (cause: unknown) => Failing,
  endpoint: string | undefined,
  { unknownHost, always = '' }: { readonly unknownHost?: string; readonly always?: string } = {},
): StoreError {
  const where = endpoint === undefined ? '' : `endpoint ${endpoint}: `;
  const causes = networkErrors(error);
  const failed = failing(causes[0] ?? error);
  const codes = causes.map((cause) => textOf(cause, 'code') ?? '');
  const said = causes.map((cause) => messageOf(cause).slice(2) || textOf(cause, 'code')).join(', ');
  const isMisnamed = unknownHost !== undefined && endpoint === undefined && codes.includes('ENOTFOUND');
  if (causes.length > 0 && causes.every(isBeforeConnection))
    return failed(
      'unreachable',
      'not-applied',
      `${where}cannot connect: ${said}${isMisnamed ? ` (${unknownHost})` : ''}${always}`,
    );
  if (isTimeout(error)) return failing(error)('unreachable', 'unknown', messageOf(error).slice(2) + always);
  // Node reports a certificate that it refuses before it sends the first byte of a request.
  if (codes.some((code) => /^(CERT_|ERR_TLS_CERT_|DEPTH_ZERO_|SELF_SIGNED_|UNABLE_TO_)/.test(code)))
    return failed('rejected', 'not-applied', `the server's certificate is not trusted: ${said}`);
  if (codes.some((code) => /^(HPE_|EPROTO$|ERR_SSL_)/.test(code))) {
    const other = codes.some((code) => code.startsWith('HPE_')) ? 'https' : 'http';
    const detail = `${where}the server does not speak the protocol of the URL (is it ${other}://?): ${said}`;
    return failed('rejected', 'unknown', detail);
  }
  const detail = `connection lost${causes.length > 0 ? `: ${said}` : messageOf(error)}`;
  return failing(error)('unreachable', 'unknown', detail);
}

/**
 * The failure of a request that was answered with a status that means the same in every store, and is no
 * success.
 *
 * @param said what the server said, as a clause; without a code of its own it is the status: `HTTP 503`
 * @param isBusy whether the server asks to come back, whatever the status
 */
export function refusal(failed: Failing, status: number, said: string, isBusy = false): StoreError {
  if (isBusy || status === 429 || status === 408 || (status >= 500 && status !== 501)) {
    const answer = said.startsWith('HTTP ') ? said : `HTTP ${status} (${said})`;
    return failed('unavailable', 'unknown', `answered ${answer}`);
  }
  if (status === 501) return failed('unsupported', 'not-applied', `not supported by this server (${said})`);
  return failed('rejected', status < 300 ? 'unknown' : 'not-applied', `refused (${said})`);
}

/** Whether another write can come before it. */
export function isConditional({ operation }: StoreRequest): boolean {
  return operation === 'create' || operation === 'replace';
}

/** What it means for an operation that its object is absent, where the server says so. */
export const ABSENCE: ByOperation<'absent' | 'conflict'> = {
  read: 'absent',
  discard: 'absent',
  replace: 'conflict',
};

/** The errors of the operating system and of Node in `error`: one for every address that was tried. */
export function networkErrors(error: unknown): readonly unknown[] {
  const inner = error instanceof AggregateError ? error.errors : [error];
  // The SDK's error for an answer has the fields of its JSON, and says whose fault it is.
  return inner.filter((each) => textOf(each, 'code') !== undefined && textOf(each, '$fault') === undefined);
}

/** True only where no byte of a request can have been sent; when in doubt, false. */
function isBeforeConnection(error: unknown): boolean {
  const syscall = textOf(error, 'syscall');
  if (syscall !== undefined) return syscall === 'connect' || syscall === 'getaddrinfo';
  // Of an error whose system call an SDK has left out.
  return /^(ECONNREFUSED|ENOTFOUND|EAI_AGAIN)$/.test(textOf(error, 'code') ?? '');
}

export function isTimeout(error: unknown): boolean {
  // The AWS SDK gives this name to lost connections too, but those keep the operating system's code.
  const code = textOf(error, 'code');
  return textOf(error, 'name') === 'TimeoutError' && (code === undefined || code === 'ETIMEDOUT');
}
