import type { StoreError, StoreFault } from './lease-store.js';

/** What a request came to that got no whole reply. */
export interface ConnectionFailure {
  readonly fault: StoreFault;
  readonly outcome: StoreError['outcome'];
  readonly detail: string;
  /** The error that says most. */
  readonly cause: unknown;
}

/**
 * Says what it means that the connection failed, or the time was up, before the head of a reply had arrived
 * or in the middle of its body: by the codes of the operating system and of Node.
 */
export function connectionFailure(error: unknown): ConnectionFailure {
  const causes = networkErrors(error);
  const [first = error] = causes;
  const codes = causes.map((cause) => textOf(cause, 'code') ?? '');
  const said = causes.map((cause) => messageOf(cause).slice(2) || textOf(cause, 'code')).join(', ');
  if (causes.length > 0 && causes.every(isBeforeConnection)) {
    return { fault: 'unreachable', outcome: 'not-applied', detail: `cannot connect: ${said}`, cause: first };
  }
  if (isTimeout(error))
    return { fault: 'unreachable', outcome: 'unknown', detail: messageOf(error).slice(2), cause: error };
  // Node reports a certificate that it refuses before it sends the first byte of a request.
  if (codes.some((code) => /^(CERT_|ERR_TLS_CERT_|DEPTH_ZERO_|SELF_SIGNED_|UNABLE_TO_)/.test(code))) {
    return {
      fault: 'rejected',
      outcome: 'not-applied',
      detail: `the server's certificate is not trusted: ${said}`,
      cause: first,
    };
  }
  if (codes.some((code) => /^(HPE_|EPROTO$|ERR_SSL_)/.test(code))) {
    const detail = `the server does not speak the protocol of the endpoint's URL: ${said}`;
    return { fault: 'rejected', outcome: 'unknown', detail, cause: first };
  }
  const detail = `connection lost${causes.length > 0 ? `: ${said}` : messageOf(error)}`;
  return { fault: 'unreachable', outcome: 'unknown', detail, cause: error };
}

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

/** What an error says, in one line, as the rest of a sentence: `: …`, or nothing. */
export function messageOf(error: unknown): string {
  const message = (textOf(error, 'message') ?? '').replace(/\s+/g, ' ').trim();
  return message === '' || message === 'UnknownError' ? '' : `: ${message}`;
}

/** A field of an error, where it is a text that says something. */
export function textOf(error: unknown, field: string): string | undefined {
  const value = fieldOf(error, field);
  return typeof value === 'string' && value !== '' ? value : undefined;
}

/** A field of whatever was thrown. */
export function fieldOf(value: unknown, field: string): unknown {
  return typeof value === 'object' && value !== null ? (value as Record<string, unknown>)[field] : undefined;
}
