import { fieldOf, messageOf, parsed, textOf } from '../../base/fields.js';
import type { HttpReply } from '../http-client.js';
import { isClockWrong } from '../http-times.js';
import type { StoreError, StoreFault } from '../lease-store.js';
import {
  type ByOperation,
  failing,
  isConditional,
  networkErrors,
  refusal,
  type StoreRequest,
} from '../store-request.js';

/**
 * Says what a reply of Cloud Storage means that is no success, by the HTTP status and the reason in its JSON;
 * never by the text. This is the only place that knows these.
 *
 * @returns `conflict` for `create` and `replace` only; `absent` for `read` and `discard` only: it may be the
 * bucket that is
 * @throws {StoreError} for everything else
 */
export function classifyReply({ status, body }: HttpReply, request: StoreRequest): 'conflict' | 'absent' {
  const { operation } = request;
  const failed = failing(request);
  const error = fieldOf(parsed(body), 'error');
  const [first] = (fieldOf(error, 'errors') as unknown[] | undefined) ?? [];
  const reason = textOf(first, 'reason') ?? '';
  const said = `HTTP ${status}${reason === '' ? '' : `, ${reason}`}${messageOf(error)}`;
  if (isConditional(request) && status === 412) return 'conflict';
  if (status === 404 && (operation === 'read' || operation === 'discard')) return 'absent';
  if (status === 404) {
    // A gateway in front of the store says 404 as well.
    if (error === undefined)
      throw failed('rejected', 'unknown', `answered ${said}, without a reason: is this Cloud Storage?`);
    throw failed('missing', 'not-applied', `bucket does not exist (${said})`);
  }
  // With 409 a concurrent write was under way, and no condition was judged.
  const isBusy = status === 409 || /rateLimitExceeded$/i.test(reason);
  if (!isBusy && (status === 401 || status === 403)) {
    throw failed('denied', 'not-applied', `access denied (${said}; it needs ${NEEDS[operation]})`);
  }
  throw refusal(failed, status, said, isBusy);
}

/**
 * What it means that there is no access token to send a request with.
 *
 * @param now this host's time, in milliseconds since the Unix epoch: keys of service accounts sign with it
 */
export function classifyNoToken(error: unknown, request: StoreRequest, now: number): StoreError {
  const failed = (fault: StoreFault, detail: string) => failing(request)(fault, 'not-applied', detail);
  const response = fieldOf(error, 'response');
  const status = fieldOf(response, 'status');
  const isBadKey = textOf(error, 'code')?.startsWith('ERR_OSSL_') === true;
  const said = `no Google credentials found${isBadKey ? ': the private key cannot be used' : ''}${messageOf(error)}`;
  if (typeof status !== 'number') {
    // Of a file there is a path.
    const isLocal = isBadKey || textOf(error, 'path') !== undefined;
    // The library itself gives up a metadata server that does not answer.
    const isLost =
      networkErrors(error).length > 0 || textOf(fieldOf(error, 'cause'), 'name') === 'AbortError';
    return isLost && !isLocal ? failed('unreachable', `not sent, ${said}`) : failed('denied', said);
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
const NEEDS: ByOperation<string> = {
  read: 'storage.objects.get',
  list: 'storage.objects.list',
  create: 'storage.objects.create',
  // Which is the one to delete as well.
  replace: 'storage.objects.create and storage.objects.delete',
  discard: 'storage.objects.delete',
};
