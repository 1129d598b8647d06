import { once } from 'node:events';
import { Agent as HttpAgent, request as httpRequest, type IncomingMessage } from 'node:http';
import { Agent as HttpsAgent, request as httpsRequest } from 'node:https';
import { text } from 'node:stream/consumers';
import type { SecureContext } from 'node:tls';
import { onAbort } from '../../base/abort.js';
import type { Clock } from '../../base/clock.js';
import { fieldOf, parsed, textOf } from '../fields.js';
import { KEPT_CONNECTIONS } from '../http-client.js';
import { storeTime } from '../http-times.js';
import { type Interval, type StoreCallOptions, StoreError } from '../lease-store.js';
import { givenUp, requestSignal, senseless } from '../store-request.js';
import {
  classifyReply,
  type EtcdRequest,
  type Exchange,
  isTokenRefused,
  withoutReply,
} from './classify-reply.js';

/** Settings of an {@link EtcdGateway}. */
export interface EtcdGatewayOptions {
  /** The store as its user wrote it: `etcd://HOST:2379/prefix`. */
  readonly url: string;
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
  /** The revision of the cluster's data as of this reply; 0 if the reply does not say. */
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
 * server, and the next one after the first failure that another server may not have.
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
    const call = requestSignal(this.options, signal);
    try {
      for (let left = this.options.endpoints.length - 1; ; left -= 1) {
        try {
          return await this.#authorized(request, path, body, call.signal, signal, (response) =>
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
    const beginning = requestSignal(this.options, signal);
    try {
      return await this.#authorized(request, path, body, beginning.signal, signal, async (response) => {
        const cancel = onAbort(signal, () => response.destroy());
        return response.once('close', cancel);
      });
    } finally {
      beginning.release();
    }
  }

  /** The version of one server, `3.5.1`, whichever server the other calls use. @throws {StoreError} */
  async version(request: EtcdRequest, endpoint: string, { signal }: StoreCallOptions = {}): Promise<string> {
    const call = requestSignal(this.options, signal);
    try {
      const reply = await this.#ask(this.#exchange(request, endpoint), 'version', undefined, call.signal);
      const version = textOf(reply, 'etcdserver');
      if (version === undefined) throw senseless(request, 'no version');
      return version;
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
    const current = this.#current;
    const exchange = this.#exchange(request, this.options.endpoints[current] as string);
    try {
      for (let isLast = false; ; isLast = true) {
        signal.throwIfAborted();
        const token = this.options.auth && (this.#token ?? (await this.#authenticate(exchange, signal)));
        exchange.sent = false;
        const response = await this.#send(exchange, `v3/${path}`, body, signal, token);
        if (exchange.status === 200) return await take(response);
        const answer = await text(response);
        const isRefused = token !== undefined && isTokenRefused(exchange.status, answer);
        if (isRefused && this.#token === token) this.#token = undefined;
        if (!isRefused || isLast) throw classifyReply(exchange, answer);
      }
    } catch (error) {
      // The other servers may do better: the next call is made there.
      const isDefinite = error instanceof StoreError && !error.transient;
      if (!isDefinite && this.#current === current) this.leave();
      if (given?.aborted) throw givenUp(request, given.reason, exchange.sent);
      if (error instanceof StoreError) throw error;
      throw withoutReply(signal.aborted ? signal.reason : error, exchange);
    }
  }

  /** Asks for a token. A failure in here has applied nothing of the request that needs it. */
  async #authenticate({ endpoint }: Exchange, signal: AbortSignal): Promise<string> {
    const { user: name, password } = this.options.auth as { user: string; password: string };
    const request: EtcdRequest = { operation: 'authenticate', url: this.options.url };
    const exchange = this.#exchange(request, endpoint);
    try {
      const reply = await this.#ask(exchange, 'v3/auth/authenticate', { name, password }, signal);
      const token = textOf(reply, 'token');
      if (token === undefined) throw senseless(request, 'without a token');
      this.#token = token;
      return token;
    } catch (error) {
      const { message, fault } = error as StoreError;
      throw new StoreError(message, { fault, outcome: 'not-applied', cause: error });
    }
  }

  /** A request to one server, and the JSON of its reply. @throws {StoreError} */
  async #ask(
    exchange: Exchange,
    path: string,
    body: object | undefined,
    signal: AbortSignal,
  ): Promise<unknown> {
    try {
      const reply = await text(await this.#send(exchange, path, body, signal));
      // Anything but JSON is no answer of etcd, but of a proxy: another server may answer.
      if (exchange.status === 200) return JSON.parse(reply);
      throw classifyReply(exchange, reply);
    } catch (error) {
      if (error instanceof StoreError) throw error;
      throw withoutReply(signal.aborted ? signal.reason : error, exchange);
    }
  }

  async #send(
    exchange: Exchange,
    path: string,
    body: object | undefined,
    signal: AbortSignal,
    token?: string,
  ): Promise<IncomingMessage> {
    const headers = {
      ...(body !== undefined && { 'content-type': 'application/json' }),
      // A member that has lost the others ends a watch instead of staying silent.
      'grpc-metadata-hasleader': 'true',
      ...(token !== undefined && { authorization: token }),
    };
    const isSecure = exchange.endpoint.startsWith('https:');
    const request = (isSecure ? httpsRequest : httpRequest)(`${exchange.endpoint}/${path}`, {
      method: body === undefined ? 'GET' : 'POST',
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
    // A failure after the answer has begun shows in the answer.
    request.on('error', () => undefined).end(body && JSON.stringify(body));
    const [response] = (await once(request, 'response')) as [IncomingMessage];
    exchange.status = response.statusCode ?? 0;
    return response;
  }

  async #reply(request: EtcdRequest, response: IncomingMessage): Promise<EtcdReply> {
    const body = parsed(await text(response)) as EtcdReply['body'] | undefined;
    const header = fieldOf(body, 'header');
    // Every reply has a header.
    if (body === undefined || typeof header !== 'object' || header === null)
      throw senseless(request, 'no JSON of etcd');
    const said = textOf(header, 'revision') ?? '';
    const revision = /^\d{1,19}$/.test(said) ? BigInt(said) : 0n;
    if (revision > this.revision) this.revision = revision;
    return { body, revision, storeTime: storeTime(response.headers.date) };
  }

  #exchange(request: EtcdRequest, endpoint: string): Exchange {
    const otherScheme = this.revision > 0n ? undefined : endpoint.startsWith('https:') ? 'etcd' : 'etcds';
    const { hasCertificate = false, auth } = this.options;
    const server = new URL(endpoint).host;
    return {
      request,
      endpoint,
      server,
      hasCertificate,
      hasUser: auth !== undefined,
      otherScheme,
      sent: false,
    };
  }
}
