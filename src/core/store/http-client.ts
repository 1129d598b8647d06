import * as http from 'node:http';
import * as https from 'node:https';
import { buffer } from 'node:stream/consumers';

/**
 * Options of the agents of all HTTP clients. A connection that is idle for 15 s is closed here, before most
 * servers close theirs: a request that is sent at that moment has an unknown outcome. With a timeout, Node
 * also obeys the server's (`Keep-Alive: timeout=5`), and closes a second earlier.
 *
 * 16 connections are enough for the probe's two races of eight writers; a lease holder never needs more than
 * one or two.
 */
export const KEPT_CONNECTIONS = { keepAlive: true, timeout: 15_000, maxFreeSockets: 16 } as const;

/** A whole reply. */
export interface HttpReply {
  readonly status: number;
  /** Lower-case names. */
  readonly headers: Readonly<Record<string, string | string[] | undefined>>;
  readonly body: string;
}

/** What a request has in addition to its URL. */
export interface HttpRequest {
  readonly method: 'GET' | 'POST' | 'DELETE';
  readonly headers?: Readonly<Record<string, string>> | undefined;
  readonly body?: Buffer | undefined;
  readonly signal: AbortSignal;
}

/**
 * Makes requests to one server over connections that stay open. It follows no redirect and repeats nothing.
 */
export class HttpClient {
  readonly #http: typeof http | typeof https;
  readonly #agent: http.Agent;

  /**
   * @param server an http or https URL, whose path comes before that of each request
   * @param agentOptions of its connections, next to {@link KEPT_CONNECTIONS}; given ones replace the limit of 16
   * connections
   */
  constructor(
    readonly server: string,
    agentOptions: https.AgentOptions = { maxSockets: 16 },
  ) {
    this.#http = server.startsWith('https:') ? https : http;
    this.#agent = new this.#http.Agent({ ...KEPT_CONNECTIONS, ...agentOptions });
  }

  /**
   * Sends a request.
   *
   * @param path with its query, below the server's URL
   * @throws the errors of Node if there is no whole reply, and `signal.reason`
   */
  async send(path: string, request: HttpRequest): Promise<HttpReply> {
    const response = await this.open(path, request);
    const text = (await buffer(response)).toString();
    return { status: response.statusCode ?? 0, headers: response.headers, body: text };
  }

  /**
   * Sends a request. Resolves once its answer has begun; a failure after that appears in the answer.
   *
   * @param onConnected called when there is a connection: before, no byte has been sent
   * @throws as `send` does
   */
  async open(
    path: string,
    { method, headers, body, signal }: HttpRequest,
    onConnected: () => void = () => undefined,
  ): Promise<http.IncomingMessage> {
    signal.throwIfAborted();
    return new Promise((resolve, reject) => {
      const options = {
        method,
        agent: this.#agent,
        signal,
        headers: { ...headers, 'content-length': body?.length ?? 0 },
      };
      const request = this.#http.request(`${this.server}${path}`, options, resolve).on('error', reject);
      // Also after a change of protocols, which is neither an answer nor an error.
      request.once('close', () => reject(new Error('the connection ended without an answer')));
      request.once('socket', (socket) => {
        if (!socket.connecting) onConnected();
        else socket.once(this.#http === https ? 'secureConnect' : 'connect', onConnected);
      });
      request.end(body);
    });
  }

  /** Closes the connections, also busy ones. */
  close(): void {
    this.#agent.destroy();
  }
}
