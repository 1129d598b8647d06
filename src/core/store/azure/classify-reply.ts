import { fieldOf, messageOf, textOf } from '../../base/fields.js';
import { isClockWrong, parseHttpDate } from '../http-times.js';
import {
  ABSENCE,
  type ByOperation,
  connectionFailure,
  failing,
  isConditional,
  refusal,
  type StoreRequest,
} from '../store-request.js';

/**
 * Says what a failed request to Blob Storage means, by the HTTP status, the service's error code and the
 * operating system's error code; never by the text. This is the only place that knows these.
 *
 * @returns `conflict` for `create` and `replace` only, `absent` for `read` and `discard` only
 * @throws {StoreError} for everything else
 */
export function classifyReply(error: unknown, request: StoreRequest): 'conflict' | 'absent' {
  const { operation } = request;
  const failed = failing(request);
  const status = fieldOf(error, 'statusCode');
  if (CREDENTIAL_ERRORS.test(textOf(error, 'name') ?? '')) {
    const isDown = typeof status === 'number' && status >= 500;
    const why = textOf(error, 'name') === CHAIN_FAILED ? `: ${NO_SOURCE}` : shortMessageOf(error);
    throw failed(isDown ? 'unavailable' : 'denied', 'not-applied', `no Azure credentials found${why}`);
  }
  // The SDK misses a header in the answer to a read.
  if (error instanceof RangeError)
    throw failed('rejected', 'unknown', `answered, but not as Blob Storage does${shortMessageOf(error)}`);
  if (typeof status !== 'number') throw connectionFailure(error, () => failed, request.endpoint);
  const code = headerOf(error, 'response', 'x-ms-error-code') ?? '';
  const said = code === '' ? `HTTP ${status}` : `${code}${shortMessageOf(error)}`;
  if (status < 300) throw failed('rejected', 'unknown', `answered ${status}, but not as Blob Storage does`);
  if (isConditional(request) && CONFLICTS.includes(code)) return 'conflict';
  if (MISSING.includes(code)) throw failed('missing', 'not-applied', `container does not exist (${said})`);
  const absence = code === 'BlobNotFound' && ABSENCE[operation];
  if (absence) return absence;
  // A gateway in front of the store says 404 as well, and must not make a lease look as if it were gone.
  if (status === 404) {
    const detail = `answered ${said}, which does not say what is missing: is this Blob Storage?`;
    throw failed('rejected', 'unknown', detail);
  }
  if (status === 401 || status === 403) {
    const signedAt = parseHttpDate(headerOf(error, 'request', 'x-ms-date'));
    const clock = isClockWrong(headerOf(error, 'response', 'date'), signedAt)
      ? ': the clock of this host is wrong'
      : '';
    const needs = code.startsWith('Authorization') ? `, needs ${NEEDS[operation]}` : '';
    const detail = `access denied (${code || `HTTP ${status}`}${needs})${clock || shortMessageOf(error)}`;
    throw failed('denied', 'not-applied', detail);
  }
  throw refusal(failed, status, said);
}

/** The errors of `@azure/identity`, which asks for a token with the first request. */
const CREDENTIAL_ERRORS =
  /^(CredentialUnavailable|Authentication|AggregateAuthentication|AuthenticationRequired)Error$/;

/** Each credential of the chain has failed; the message of the error is a list of them. */
const CHAIN_FAILED = 'AggregateAuthenticationError';
const NO_SOURCE =
  'not by AZURE_STORAGE_CONNECTION_STRING, nor by any source of the default chain (workload or managed identity, az login, …)';

const CONFLICTS = ['BlobAlreadyExists', 'ConditionNotMet', 'TargetConditionNotMet'];

const MISSING = ['ContainerNotFound', 'ContainerBeingDeleted', 'ContainerDisabled'];

/**
 * The data action that each operation needs, below
 * `Microsoft.Storage/storageAccounts/blobServices/containers/`.
 */
const NEEDS: ByOperation<string> = {
  read: 'blobs/read',
  list: 'blobs/read',
  create: 'blobs/write',
  replace: 'blobs/write',
  discard: 'blobs/delete',
};

/** A header of the request or of the response in an error of the SDK. */
function headerOf(error: unknown, part: 'request' | 'response', name: string): string | undefined {
  const headers = fieldOf(fieldOf(error, part), 'headers') as
    | { get?(name: string): string | undefined }
    | undefined;
  return headers?.get?.(name);
}

/**
 * The first line: the others name the request and the time, or each credential of the chain and what is wrong
 * with it.
 */
function shortMessageOf(error: unknown): string {
  return messageOf({ message: textOf(error, 'message')?.split('\n', 1)[0] });
}
