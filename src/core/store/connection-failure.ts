import { messageOf, textOf } from '../base/fields.js';
import type { StoreError } from './lease-store.js';
import type { Failing, Operation } from './store-request.js';

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

/** What it means for an operation that its object is absent, where the server says so. */
export const ABSENCE: Readonly<Partial<Record<Operation, 'absent' | 'conflict'>>> = {
  read: 'absent',
  discard: 'absent',
  replace: 'conflict',
};

/** The errors of the operating system and of Node in `error`: one for every address that was tried. */
export function networkErrors(error: unknown): readonly unknown[] {
  const inner = error instanceof AggregateError ? error.errors : [error];
  return inner.filter((each) => textOf(each, 'code') !== undefined);
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
