import { connectionFailure, fieldOf, messageOf, networkErrors, textOf } from '../connection-failure.js';
import { isClockWrong } from '../host-clock.js';
import type { HttpReply } from '../http-client.js';
import type { StoreError, StoreFault } from '../lease-store.js';
import { failure, type StoreRequest } from '../store-request.js';

/**
 * Says what a reply of Cloud Storage means that is no success, by the HTTP status and the reason in its JSON;
 * never by the text. This and {@link classifyFailure} are the only places that know these.
 *
 * @returns `conflict` for `create` and `replace` only; `absent` for `read` and `discard` only: it may be the
 * bucket that is
 */
export function classifyReply(
  { status, body }: HttpReply,
  request: StoreRequest,
): 'conflict' | 'absent' | StoreError {
  const { operation } = request;
  const failed = (fault: StoreFault, outcome: StoreError['outcome'], detail: string) =>
    failure(request, { fault, outcome, detail });
  const error = fieldOf(parsed(body), 'error');
  const [first] = (fieldOf(error, 'errors') as unknown[] | undefined) ?? [];
  const reason = textOf(first, 'reason') ?? '';
  const said = `HTTP ${status}${reason === '' ? '' : `, ${reason}`}${messageOf(error)}`;
  const conditional = operation === 'create' || operation === 'replace';
  if (conditional && (status === 412 || status === 409)) return 'conflict';
  if (status === 404 && (operation === 'read' || operation === 'discard')) return 'absent';
  if (status === 404) {
    // A gateway in front of the store says 404 as well.
    if (error === undefined)
      return failed('rejected', 'unknown', `answered ${said}, without a reason: is this Cloud Storage?`);
    return failed('missing', 'not-applied', `bucket does not exist (${said})`);
  }
  if (
    status === 429 ||
    status === 408 ||
    (status >= 500 && status !== 501) ||
    /rateLimitExceeded$/i.test(reason)
  ) {
    return failed('unavailable', 'unknown', `answered ${said}`);
  }
  if (status === 401 || status === 403) {
    return failed('denied', 'not-applied', `access denied (${said}; it needs ${NEEDS[operation]})`);
  }
  if (status === 501) return failed('unsupported', 'not-applied', `not supported by this server (${said})`);
  return failed('rejected', status < 300 ? 'unknown' : 'not-applied', `refused (${said})`);
}

/** What it means that a request got no whole reply. */
export function classifyFailure(error: unknown, request: StoreRequest): StoreError {
  const { fault, outcome, detail } = connectionFailure(error);
  return failure(request, { fault, outcome, detail });
}

/**
 * What it means that there is no access token to send a request with.
 *
 * @param now this host's time, in milliseconds since the Unix epoch: keys of service accounts sign with it
 */
export function classifyNoToken(error: unknown, request: StoreRequest, now: number): StoreError {
  const failed = (fault: StoreFault, detail: string) =>
    failure(request, { fault, outcome: 'not-applied', detail });
  const response = fieldOf(error, 'response');
  const status = fieldOf(response, 'status');
  const said = `no Google credentials to be had${messageOf(error)}`;
  if (typeof status !== 'number') {
    return networkErrors(error).length > 0
      ? failed('unreachable', `not sent, ${said}`)
      : failed('denied', said);
  }
  const headers = fieldOf(response, 'headers') as { get?(name: string): string | null } | undefined;
  const clock = isClockWrong(headers?.get?.('date') ?? undefined, now)
    ? ': the clock of this host is wrong'
    : '';
  return failed(
    status >= 500 || status === 429 ? 'unavailable' : 'denied',
    `${said} (HTTP ${status})${clock}`,
  );
}

/** The permission that each operation needs. */
const NEEDS = {
  read: 'storage.objects.get',
  list: 'storage.objects.list',
  create: 'storage.objects.create',
  // Which is the one to delete as well.
  replace: 'storage.objects.create and storage.objects.delete',
  discard: 'storage.objects.delete',
} as const;

/** What JSON says; undefined where it is none. */
export function parsed(json: string): unknown {
  try {
    return JSON.parse(json);
  } catch {
    return undefined;
  }
}
