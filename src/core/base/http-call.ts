import { once } from 'node:events';
import { request as httpRequest, type IncomingMessage } from 'node:http';
import { request as httpsRequest } from 'node:https';
import type { LookupFunction } from 'node:net';

/** The answer of a server. */
export interface HttpReply {
  readonly status: number;
  /** Its beginning, if it is longer than `maxBytes`. */
  readonly body: string;
}

interface HttpCallOptions {
  readonly signal: AbortSignal;
  readonly lookup?: LookupFunction;
  readonly userAgent: string;
  /** How much of a body is read, or a little more. @default 65536 */
  readonly maxBytes?: number;
  /** What is sent, in a PUT instead of a GET. */
  readonly put?: string | undefined;
}

/**
 * Requests a URL on this host over a separate connection, without redirects, proxies, and the verification of
 * certificates.
 *
 * @throws the failure, or `signal.reason`
 */
export async function httpCall(
  url: URL,
  { signal, lookup, userAgent, maxBytes = 65_536, put }: HttpCallOptions,
): Promise<HttpReply> {
  const headers = { 'user-agent': userAgent, accept: '*/*' };
  // A name may have several addresses, and the server may listen on one of them only.
  const options = {
    ...{ agent: false, signal, headers, autoSelectFamily: true, method: put === undefined ? 'GET' : 'PUT' },
    ...(lookup && { lookup }),
  };
  const request =
    url.protocol === 'https:'
      ? httpsRequest(url, { ...options, rejectUnauthorized: false })
      : httpRequest(url, options);
  // A failure after the answer has begun appears in the answer.
  request.on('error', () => undefined).end(put);
  // Also after a change of protocols.
  const closed = once(request, 'close').then(() =>
    Promise.reject(new Error('the connection ended without an answer')),
  );
  try {
    const [response] = (await Promise.race([once(request, 'response'), closed])) as [IncomingMessage];
    const chunks: Buffer[] = [];
    let bytes = 0;
    for await (const chunk of response) {
      chunks.push(chunk);
      bytes += chunk.length;
      if (bytes > maxBytes) break;
    }
    return { status: response.statusCode ?? 0, body: Buffer.concat(chunks).toString('utf8') };
  } catch (error) {
    throw signal.aborted ? signal.reason : ofAllAddresses(error);
  }
}

/** The error of a host with several addresses has no text of use: this one has the texts of all addresses. */
export function ofAllAddresses(error: unknown): unknown {
  if (!(error instanceof AggregateError)) return error;
  const problems = error.errors.map((each) => (each instanceof Error ? each.message : String(each)));
  return new Error(problems.join(', '), { cause: error.errors[0] });
}
