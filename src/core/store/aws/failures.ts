import { fieldOf, messageOf, textOf } from '../../base/fields.js';
import type { StoreError, StoreFault } from '../lease-store.js';
import {
  connectionFailure,
  type Failing,
  failing,
  isTimeout,
  networkErrors,
  type StoreRequest,
} from '../store-request.js';
import { CREDENTIAL_SOURCES, credentialSource, isWithoutCredentials } from './credentials.js';
import type { ObservedReply } from './observed-reply.js';

/**
 * The failure of a request that was not sent, or whose reply did not come or was cut; undefined where it was
 * answered. What fails before is nearly always the credentials, which the SDK fetches with the first request.
 *
 * @param ofSession the failure of another request that it makes before this one; undefined where it makes none
 */
export function unanswered(
  error: unknown,
  request: StoreRequest,
  { sent, status: answered }: ObservedReply,
  ofSession?: (status: number, name: string) => StoreError,
): StoreError | undefined {
  const failedBy = failingBy(request);
  const isLost = isTimeout(error) || networkErrors(error).length > 0;
  if (sent && answered !== undefined && !isLost) return undefined;
  if (sent) {
    const hints = { unknownHost: 'is the region right?', always: unusedProxy() };
    return connectionFailure(error, failedBy, request.endpoint, hints);
  }
  const name = textOf(error, 'name') ?? '';
  const message = messageOf(error);
  const failed = (fault: StoreFault, detail: string) => failedBy(error)(fault, 'not-applied', detail);
  if (isWithoutCredentials(error))
    return failed('denied', `no AWS credentials found (${credentialHint()})${message}`);
  const noAnswer = `no usable answer from the source of the credentials (${credentialSource()})`;
  // What is no JSON is an answer of that source as well.
  if (isLost || name === 'SyntaxError')
    return failed('unreachable', `${ofSession ? 'not sent' : noAnswer}${message}`);
  const status = fieldOf(fieldOf(error, '$metadata'), 'httpStatusCode');
  if (typeof status !== 'number') return failed('rejected', `not sent${message}`);
  if (ofSession) return ofSession(status, name);
  const said = `${name}, HTTP ${status}`;
  return status >= 500
    ? failed('unavailable', `${noAnswer}: ${said}`)
    : failed('denied', `no AWS credentials from ${credentialSource()} (${said})${message}`);
}

/** The failures of a request, without the errors that speak of the SDK's parser: causes are printed. */
export function failingBy(request: StoreRequest): (error: unknown) => Failing {
  return (error) => {
    const speaks = (textOf(error, 'Code') ?? textOf(error, 'code')) || isWithoutCredentials(error);
    return failing(request, speaks ? error : undefined);
  };
}

const credentialHint = (profile = process.env.AWS_PROFILE) =>
  profile ? `AWS_PROFILE is ${profile}: is that profile in ~/.aws/config?` : CREDENTIAL_SOURCES;

/** Says that a proxy is set up, and not used. Empty where none is. */
export function unusedProxy(env: NodeJS.ProcessEnv = process.env): string {
  const names = ['HTTPS_PROXY', 'https_proxy', 'HTTP_PROXY', 'http_proxy'];
  const name = names.find((variable) => env[variable]);
  return name === undefined ? '' : ` (${name} is set, and the store uses no proxy)`;
}
