import { once } from 'node:events';
import { Agent as HttpAgent, request as httpRequest, type IncomingMessage } from 'node:http';
import { Agent as HttpsAgent, request as httpsRequest } from 'node:https';
import { text } from 'node:stream/consumers';
import type { SecureContext } from 'node:tls';
import { type DerivedSignal, onAbort, timeoutSignal } from '../../base/abort.js';
import type { Clock } from '../../base/clock.js';
import { storeTime } from '../http-date.js';
import { KEPT_CONNECTIONS } from '../kept-connections.js';
import { type Interval, type StoreCallOptions, StoreError } from '../lease-store.js';
import {
  classifyReply,
  type EtcdRequest,
  type Exchange,
  givenUp,
  isTokenRefused,
  senseless,
  withoutReply,
} from './classify-reply.js';

/** Settings of an {@link EtcdGateway}. */
export interface EtcdGatewayOptions {
  /** `http://HOST:PORT` or `https://HOST:PORT` of each server that may be asked, at least one. */
  readonly endpoints: readonly string[];
  /** @default none: the cluster lets everybody in, or knows the client by its certificate */
  readonly auth?: { readonly user: string; readonly password: string } | undefined;
  /** For `https:`. */
  readonly secureContext?: SecureContext | undefined;
  readonly hasCertificate?: boolean | undefined;
  readonly clock: Clock;
  /** How long one call may take in all, in milliseconds. */
  readonly requestTimeoutMs: number;
}

/** A reply of the gateway. */
export interface EtcdReply {
  readonly body: Readonly<Record<string, unknown>>;
  /** The revision of the cluster's data as of this reply; 0 where it does not tell. */
  readonly revision: bigint;
  readonly storeTime: Interval;
}

/** What a call is made with. */
export interface EtcdCall extends StoreCallOptions {
  /** Whether it may be made twice: a write whose outcome is unknown may not. @default false */
  readonly repeatable?: boolean;
}

/**
 * Calls etcd's API by its JSON gateway (https://etcd.io/docs/latest/dev-guide/api_grpc_gateway/). Asks one
 * server, and the next one from the first failure on that another server may not have.
 */
export class EtcdGateway {
  /** The greatest revision of all replies; 0 before the first one. */
  revision = 0n;
  readonly #agent: HttpAgent;
  #current = 0;
  #token: string | undefined;

  constructor(private readonly options: EtcdGatewayOptions) {
    const { endpoints, secureContext } = options;
    this.#agent = endpoints[0]?.startsWith('https:')
      ? new HttpsAgent({ ...KEPT_CONNECTIONS, secureContext, rejectUnauthorized: true })
      : new HttpAgent(KEPT_CONNECTIONS);
  }

  /**
   * Makes one request, and repeats it at the other servers while that is safe: nothing was sent, or it is
   * `repeatable`.
   *
   * @param path below `/v3/`
   * @throws {StoreError} when there was no definite answer
   */
  async call(
    request: EtcdRequest,
    path: string,
    body: object,
    { signal, repeatable = false }: EtcdCall = {},
  ): Promise<EtcdReply> {
    const call = this.#limited(signal);
    try {
      for (let left = this.options.endpoints.length - 1; ; left -= 1) {
        try {
          return await this.#authorized(request, path, body, call.signal, signal, async (response) =>
            this.#reply(request, response),
          );
        } catch (error) {
          const mayRepeat =
            error instanceof StoreError && error.transient && (repeatable || error.outcome === 'not-applied');
          if (!mayRepeat || left === 0 || call.signal.aborted) throw error;
        }
      }
    } finally {
      call.release();
    }
  }

  /**
   * Makes a request whose answer has no end. Resolves to it once it has begun; it is destroyed when `signal`
   * aborts.
   *
   * @throws {StoreError}
   */
  async stream(
    request: EtcdRequest,
    path: string,
    body: object,
    signal: AbortSignal,
  ): Promise<IncomingMessage> {
    const beginning = this.#limited(signal);
    try {
      return await this.#authorized(request, path, body, beginning.signal, signal, async (response) => {
        const cancel = onAbort(signal, () => response.destroy());
        return response.once('close', cancel);
      });
    } finally {
      beginning.release();
    }
  }

  /** The version of one server, `3.5.1`, whichever the others are asked of. @throws {StoreError} */
  async version(request: EtcdRequest, endpoint: string, { signal }: StoreCallOptions = {}): Promise<string> {
    const exchange = this.#exchange(endpoint);
    const call = this.#limited(signal);
    try {
      const body = await text(
        await this.#send(exchange, 'GET', `${endpoint}/version`, undefined, call.signal),
      );
      if (exchange.status !== 200) throw classifyReply(request, exchange, body);
      const { etcdserver } = JSON.parse(body) as { etcdserver?: unknown };
      return String(etcdserver);
    } catch (error) {
      throw error instanceof StoreError
        ? error
        : withoutReply(call.signal.aborted ? call.signal.reason : error, request, exchange);
    } finally {
      call.release();
    }
  }

  /** Asks the next server from now on. */
  leave(): void {
    this.#current = (this.#current + 1) % this.options.endpoints.length;
  }

  /** Breaks all connections. Idempotent. */
  close(): void {
    this.#agent.destroy();
  }

  /**
   * A request at the present server, with a token where one is needed; made once more where only the token
   * was refused.
   */
  async #authorized<T>(
    request: EtcdRequest,
    path: string,
    body: object,
    signal: AbortSignal,
    given: AbortSignal | undefined,
    take: (response: IncomingMessage) => Promise<T>,
  ): Promise<T> {
    const { endpoints } = this.options;
    const current = this.#current;
    const endpoint = endpoints[current] as string;
    const exchange = this.#exchange(endpoint);
    try {
      for (let isLast = false; ; isLast = true) {
        signal.throwIfAborted();
        const token =
          this.options.auth && (this.#token ?? (await this.#authenticate(request.url, endpoint, signal)));
        exchange.sent = false;
        const response = await this.#send(exchange, 'POST', `${endpoint}/v3/${path}`, body, signal, token);
        if (exchange.status === 200) return await take(response);
        const answer = await text(response);
        const isRefused = token !== undefined && isTokenRefused(exchange.status ?? 0, answer);
        if (isRefused && this.#token === token) this.#token = undefined;
        if (!isRefused || isLast) throw classifyReply(request, exchange, answer);
      }
    } catch (error) {
      // The other servers may do better: the next call is made there.
      const isDefinite = error instanceof StoreError && !error.transient;
      if (!isDefinite && this.#current === current) this.leave();
      if (given?.aborted) throw givenUp(given.reason, request, exchange);
      if (error instanceof StoreError) throw error;
      throw withoutReply(signal.aborted ? signal.reason : error, request, exchange);
    }
  }

  /** Asks for a token. What fails here has applied nothing of the request that needs it. */
  async #authenticate(url: string, endpoint: string, signal: AbortSignal): Promise<string> {
    const { user: name, password } = this.options.auth as { user: string; password: string };
    const request: EtcdRequest = { operation: 'authenticate', url };
    const exchange = this.#exchange(endpoint);
    try {
      const response = await this.#send(
        exchange,
        'POST',
        `${endpoint}/v3/auth/authenticate`,
        { name, password },
        signal,
      );
      const body = await text(response);
      if (exchange.status !== 200) throw classifyReply(request, exchange, body);
      const { token } = JSON.parse(body) as { token?: unknown };
      if (typeof token !== 'string' || token === '') throw senseless(request, 'without a token');
      this.#token = token;
      return token;
    } catch (error) {
      const { message, fault } =
        error instanceof StoreError
          ? error
          : withoutReply(signal.aborted ? signal.reason : error, request, exchange);
      throw new StoreError(message, { fault, outcome: 'not-applied', cause: error });
    }
  }

  async #send(
    exchange: Exchange,
    method: 'GET' | 'POST',
    url: string,
    body: object | undefined,
    signal: AbortSignal,
    token?: string,
  ): Promise<IncomingMessage> {
    const headers = {
      ...(body !== undefined && { 'content-type': 'application/json' }),
      // A member that has lost the others ends a watch instead of telling nothing.
      'grpc-metadata-hasleader': 'true',
      ...(token !== undefined && { authorization: token }),
    };
    const isSecure = url.startsWith('https:');
    const request = (isSecure ? httpsRequest : httpRequest)(url, {
      method,
      agent: this.#agent,
      headers,
      signal,
    });
    request.once('socket', (socket) => {
      const send = () => {
        exchange.sent = true;
      };
      if (socket.connecting) socket.once(isSecure ? 'secureConnect' : 'connect', send);
      else send();
    });
    // A failure after the answer has begun is told by the answer.
    request.on('error', () => undefined).end(body && JSON.stringify(body));
    const [response] = (await once(request, 'response')) as [IncomingMessage];
    exchange.status = response.statusCode ?? 0;
    return response;
  }

  async #reply(request: EtcdRequest, response: IncomingMessage): Promise<EtcdReply> {
    const body = parse(await text(response));
    if (body === undefined) throw senseless(request, 'no JSON of etcd');
    const { revision: told } = body.header as { revision?: unknown };
    const revision = typeof told === 'string' && /^\d{1,19}$/.test(told) ? BigInt(told) : 0n;
    if (revision > this.revision) this.revision = revision;
    return { body, revision, storeTime: storeTime(response.headers.date) };
  }

  #limited(signal: AbortSignal | undefined): DerivedSignal {
    const { clock, requestTimeoutMs } = this.options;
    return timeoutSignal(
      clock,
      requestTimeoutMs,
      () => new DOMException(`no answer within ${requestTimeoutMs} ms`, 'TimeoutError'),
      signal,
    );
  }

  #exchange(endpoint: string): Exchange {
    const otherScheme = this.revision > 0n ? undefined : endpoint.startsWith('https:') ? 'etcd' : 'etcds';
    return {
      server: new URL(endpoint).host,
      hasCertificate: this.options.hasCertificate ?? false,
      otherScheme,
      sent: false,
    };
  }
}

/** A reply in JSON, which has a header in every case. */
function parse(body: string): Readonly<Record<string, unknown>> | undefined {
  try {
    const value = JSON.parse(body) as { header?: unknown } | null;
    return typeof value?.header === 'object' && value.header !== null ? { ...value } : undefined;
  } catch {
    return undefined;
  }
}
