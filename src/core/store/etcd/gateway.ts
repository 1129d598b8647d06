import type { IncomingMessage } from 'node:http';
import { text } from 'node:stream/consumers';
import { onAbort } from '../../base/abort.js';
import type { Clock } from '../../base/clock.js';
import { ConfigError } from '../../base/errors.js';
import { fieldOf, parsed, textOf } from '../../base/fields.js';
import { prepareTlsFiles } from '../../base/tls.js';
import { HttpClient } from '../http-client.js';
import { storeTime } from '../http-times.js';
import { type Interval, StoreError } from '../lease-store.js';
import { atOneOf, givenUp, type StoreRequest, senseless, withinRequestTime } from '../store-request.js';
import { classifyReply, type Exchange, isTokenRefused, withoutReply } from './classify-reply.js';
import { type EtcdAccess, parseEtcdAuth } from './etcd-access.js';
import type { EtcdKeyValue } from './key-value.js';

/** Settings of an {@link EtcdGateway}. */
export interface EtcdGatewayOptions {
  /** The store as its user wrote it: `etcd://HOST:2379/prefix`. */
  readonly url: string;
  /** `http://HOST:PORT` or `https://HOST:PORT` of each server that may be asked, at least one. */
  readonly endpoints: readonly string[];
  /** @default without user and client certificate */
  readonly etcd?: EtcdAccess | undefined;
  readonly clock: Clock;
  /** How long one call may take in all, in milliseconds. */
  readonly requestTimeoutMs: number;
}

/** A change of a key. */
interface EtcdEvent {
  readonly type?: 'DELETE';
  readonly kv?: EtcdKeyValue;
}

/** A reply of the gateway. */
export interface EtcdReply {
  readonly body: Readonly<Record<string, unknown>>;
  /** The revision of the cluster's data as of this reply; 0 if the reply does not say. */
  readonly revision: bigint;
  readonly storeTime: Interval;
}

/** The calls that do no harm twice. A write whose outcome is unknown is not repeated (safety rule 5). */
const REPEATABLE: readonly string[] = ['kv/range', 'kv/deleterange', 'lease/grant', 'cluster/member/list'];

/** How much longer than asked a mark stays, in seconds: for clocks of etcd's members that run fast. */
const MARGIN_S = 2;

/**
 * Calls etcd's API by its JSON gateway (https://etcd.io/docs/latest/dev-guide/api_grpc_gateway/). Asks one
 * server, and the next one after the first failure that another server may not have.
 */
export class EtcdGateway {
  /** The greatest revision of all replies of the present cluster; 0 before the first one. */
  revision = 0n;
  #cluster: string | undefined;
  /** One for each server. */
  readonly clients: readonly HttpClient[];
  readonly #limits: Pick<EtcdGatewayOptions, 'clock' | 'requestTimeoutMs'>;
  readonly #url: string;
  readonly #hasCertificate: boolean;
  readonly #user: ReturnType<typeof parseEtcdAuth> | undefined;
  #current = 0;
  #token: string | undefined;

  /** @throws {ConfigError} when what it gets into the cluster with cannot be used */
  constructor({ url, endpoints, etcd = {}, clock, requestTimeoutMs }: EtcdGatewayOptions) {
    this.#limits = { clock, requestTimeoutMs };
    this.#url = url;
    this.#hasCertificate = etcd.cert !== undefined;
    const { auth, ...files } = etcd;
    const isSecure = endpoints.every((endpoint) => endpoint.startsWith('https:'));
    const [useless] = Object.entries(files).find(([, content]) => content !== undefined) ?? [];
    // Without a word, what is meant to be encrypted would not be.
    if (useless !== undefined && !isSecure)
      throw new ConfigError(`etcd.${useless}`, '…', 'a store of etcds:// (nothing is encrypted without)');
    this.#user = auth === undefined ? undefined : parseEtcdAuth(auth, 'etcd.auth');
    const secureContext = isSecure ? prepareTlsFiles(files, 'etcd.') : undefined;
    const secure = { secureContext, rejectUnauthorized: true };
    this.clients = endpoints.map((endpoint) => new HttpClient(endpoint, secure));
  }

  /**
   * Makes one request, and repeats it at the other servers while that is safe: nothing was sent, or the
   * call is repeatable.
   *
   * @param path below `/v3/`
   * @throws {StoreError} when there was no definite answer
   */
  call(request: StoreRequest, path: string, body: object): Promise<EtcdReply> {
    const isRepeatable = REPEATABLE.includes(path);
    return withinRequestTime(this.#limits, request.signal, async (limit) => {
      for (let left = this.clients.length - 1; ; left -= 1) {
        const limits = atOneOf(isRepeatable && left > 0 ? this.clients.length : 1, this.#limits);
        try {
          return await withinRequestTime(limits, limit, (part) =>
            this.#authorized(request, path, body, part, (response) => this.#reply(request, response)),
          );
        } catch (error) {
          const mayRepeat =
            error instanceof StoreError &&
            error.transient &&
            (isRepeatable || error.outcome === 'not-applied');
          if (!mayRepeat || left === 0 || limit.aborted) throw error;
        }
      }
    });
  }

  /**
   * The changes that a watch reports, one message a line. Ends when the watch does: the server has cancelled
   * it, since the revision where it was to begin is compacted, or since it has lost the others.
   *
   * @throws {StoreError} before the first change; what broke the connection, or that the signal of the request
   * has aborted
   */
  async *watch(request: StoreRequest, create: object): AsyncGenerator<EtcdEvent> {
    const { signal } = request;
    const body = { create_request: create };
    const response = await withinRequestTime(this.#limits, signal, (limit) =>
      this.#authorized(request, 'watch', body, limit, async (begun) => {
        const cancel = onAbort(signal, () => begun.destroy());
        return begun.once('close', cancel);
      }),
    );
    let rest = '';
    try {
      for await (const chunk of response.setEncoding('utf8') as AsyncIterable<string>) {
        const lines = (rest + chunk).split('\n');
        rest = lines.pop() ?? '';
        for (const line of lines) {
          if (line === '') continue;
          const { result } = JSON.parse(line) as { result?: { canceled?: boolean; events?: EtcdEvent[] } };
          if (result === undefined || result.canceled) return;
          yield* result.events ?? [];
        }
      }
    } finally {
      response.destroy();
    }
  }

  /**
   * Grants a lease of etcd's on which a mark stays for at least `ms` after this call began. It is never
   * renewed, so that no member ever believes in an earlier end: renewals are known to the leader alone, and one
   * that has lost its place revokes what another one has renewed.
   *
   * @throws {StoreError}
   */
  async grantMark(request: StoreRequest, ms: number): Promise<string> {
    const seconds = Math.ceil(ms / 1_000) + MARGIN_S;
    const { body } = await this.call(request, 'lease/grant', { TTL: String(seconds) });
    if (typeof body.ID === 'string' && Number(body.TTL) >= seconds) return body.ID;
    throw senseless(request, 'no lease of the time that was asked for');
  }

  /** The version of one server, `3.5.1`, whichever server the other calls use. @throws {StoreError} */
  version(request: StoreRequest, client: HttpClient): Promise<string> {
    return withinRequestTime(this.#limits, request.signal, async (limit) => {
      const reply = await this.#ask(this.#exchange(request, client), 'version', undefined, limit, json);
      const version = textOf(reply, 'etcdserver');
      if (version === undefined) throw senseless(request, 'no version');
      return version;
    });
  }

  /** Asks the next server from now on. */
  leave(): void {
    this.#current = (this.#current + 1) % this.clients.length;
  }

  /** Breaks all connections. Idempotent. */
  close(): void {
    for (const client of this.clients) client.close();
  }

  /**
   * A request at the present server, with a token where one is needed; made once more where only the token
   * was refused.
   */
  async #authorized<T>(
    request: StoreRequest,
    path: string,
    body: object,
    limit: AbortSignal,
    take: (response: IncomingMessage) => Promise<T>,
  ): Promise<T> {
    const current = this.#current;
    const exchange = this.#exchange(request, this.clients[current] as HttpClient);
    try {
      for (let isLast = false; ; isLast = true) {
        const token = this.#user && (this.#token ?? (await this.#authenticate(this.#user, exchange, limit)));
        try {
          return await this.#ask(exchange, `v3/${path}`, body, limit, take, token);
        } catch (error) {
          const isRefused = token !== undefined && isTokenRefused(exchange);
          if (isRefused && this.#token === token) this.#token = undefined;
          if (!isRefused || isLast) throw error;
        }
      }
    } catch (error) {
      // The other servers may do better: the next call is made there.
      const isDefinite = error instanceof StoreError && !error.transient;
      if ((!isDefinite || exchange.isUnanswered) && this.#current === current) this.leave();
      if (request.signal?.aborted) throw givenUp(request, request.signal.reason, exchange.sent);
      throw error;
    }
  }

  /** Asks for a token. A failure in here has applied nothing of the request that needs it. */
  async #authenticate(
    { user: name, password }: ReturnType<typeof parseEtcdAuth>,
    outer: Exchange,
    signal: AbortSignal,
  ): Promise<string> {
    const request: StoreRequest = { operation: 'authenticate', url: this.#url };
    const exchange = this.#exchange(request, outer.client);
    try {
      const reply = await this.#ask(exchange, 'v3/auth/authenticate', { name, password }, signal, json);
      const token = textOf(reply, 'token');
      if (token === undefined) throw senseless(request, 'without a token');
      this.#token = token;
      return token;
    } catch (error) {
      outer.isUnanswered = exchange.isUnanswered === true;
      const { message, fault } = error as StoreError;
      throw new StoreError(message, { fault, outcome: 'not-applied', cause: error });
    }
  }

  /** A request to one server. @throws {StoreError} */
  async #ask<T>(
    exchange: Exchange,
    path: string,
    body: object | undefined,
    signal: AbortSignal,
    take: (response: IncomingMessage) => Promise<T>,
    token?: string,
  ): Promise<T> {
    const headers: Record<string, string> = {
      ...(body !== undefined && { 'content-type': 'application/json' }),
      // A member that has lost the others ends a watch instead of staying silent.
      'grpc-metadata-hasleader': 'true',
      ...(token !== undefined && { authorization: token }),
    };
    const method = body === undefined ? 'GET' : 'POST';
    const request = { method, headers, body: body && Buffer.from(JSON.stringify(body)), signal } as const;
    exchange.sent = false;
    exchange.refusal = undefined;
    exchange.isUnanswered = false;
    try {
      const response = await exchange.client.open(`/${path}`, request, () => {
        exchange.sent = true;
      });
      exchange.status = response.statusCode ?? 0;
      if (exchange.status === 200) return await take(response);
      exchange.refusal = await text(response);
      throw classifyReply(exchange);
    } catch (error) {
      if (error instanceof StoreError) throw error;
      exchange.isUnanswered = true;
      throw withoutReply(signal.aborted ? signal.reason : error, exchange);
    }
  }

  async #reply(request: StoreRequest, response: IncomingMessage): Promise<EtcdReply> {
    const body = parsed(await text(response)) as EtcdReply['body'] | undefined;
    const header = fieldOf(body, 'header');
    // Every reply has a header.
    if (body === undefined || typeof header !== 'object' || header === null)
      throw senseless(request, 'no JSON of etcd');
    const said = textOf(header, 'revision') ?? '';
    const revision = /^\d{1,19}$/.test(said) ? BigInt(said) : 0n;
    const cluster = textOf(header, 'cluster_id');
    if (revision > this.revision || cluster !== this.#cluster) this.revision = revision;
    this.#cluster = cluster;
    return { body, revision, storeTime: storeTime(response.headers.date) };
  }

  #exchange(request: StoreRequest, client: HttpClient): Exchange {
    const { host: server, protocol } = new URL(client.server);
    const otherScheme = this.revision > 0n ? undefined : protocol === 'https:' ? 'etcd' : 'etcds';
    const hasUser = this.#user !== undefined;
    const hasCertificate = this.#hasCertificate;
    return { request, client, server, hasCertificate, hasUser, otherScheme, sent: false };
  }
}

/** Anything but JSON is no answer of etcd, but of a proxy: another server may answer. */
async function json(response: IncomingMessage): Promise<unknown> {
  return JSON.parse(await text(response));
}
