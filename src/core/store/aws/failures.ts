import { fieldOf, messageOf, textOf } from '../../base/fields.js';
import type { StoreError, StoreFault } from '../lease-store.js';
import { connectionFailure, type Failing, isTimeout, networkErrors } from '../store-request.js';
import { CREDENTIAL_SOURCES, credentialSource, isWithoutCredentials } from './credentials.js';

/**
 * The SDK failed on the way: nearly always over the credentials, which it fetches with the first request.
 *
 * @param ofSession the failure of another request that it makes before this one; undefined where it makes none
 */
export function beforeSending(
  error: unknown,
  failing: Failing,
  ofSession?: (status: number, name: string) => StoreError,
): StoreError {
  const name = textOf(error, 'name') ?? '';
  const message = messageOf(error);
  const failed = (fault: StoreFault, detail: string) => failing(fault, 'not-applied', detail);
  if (isWithoutCredentials(error))
    return failed('denied', `no AWS credentials found (${credentialHint()})${message}`);
  const noAnswer = `no answer from the source of the credentials (${credentialSource()})`;
  if (isTimeout(error) || networkErrors(error).length > 0)
    return failed('unreachable', `${ofSession ? 'not sent' : noAnswer}${message}`);
  const status = fieldOf(fieldOf(error, '$metadata'), 'httpStatusCode');
  if (typeof status !== 'number') return failed('rejected', `not sent${message}`);
  if (ofSession) return ofSession(status, name);
  const said = `${name}, HTTP ${status}`;
  return status >= 500
    ? failed('unavailable', `${noAnswer}: ${said}`)
    : failed('denied', `no AWS credentials from ${credentialSource()} (${said})${message}`);
}

/** The failure of a request whose reply did not come, or was cut: {@link connectionFailure}. */
export function lostConnection(
  error: unknown,
  failing: (cause: unknown) => Failing,
  endpoint: string | undefined,
): StoreError {
  const hints = { unknownHost: 'is the region right?', always: unusedProxy() };
  return connectionFailure(error, failing, endpoint, hints);
}

const credentialHint = (profile = process.env.AWS_PROFILE) =>
  profile ? `AWS_PROFILE is ${profile}: is that profile in ~/.aws/config?` : CREDENTIAL_SOURCES;

/** Says that a proxy is set up, and not used. Empty where none is. */
export function unusedProxy(env: NodeJS.ProcessEnv = process.env): string {
  const names = ['HTTPS_PROXY', 'https_proxy', 'HTTP_PROXY', 'http_proxy'];
  const name = names.find((variable) => env[variable]);
  return name === undefined ? '' : ` (${name} is set, and the store uses no proxy)`;
}
