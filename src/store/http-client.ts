import * as http from 'node:http';
import * as https from 'node:https';
import { KEPT_CONNECTIONS } from './kept-connections.js';

/** A whole reply. */
export interface HttpReply {
  readonly status: number;
  /** Lower-case names. */
  readonly headers: Readonly<Record<string, string | string[] | undefined>>;
  readonly body: string;
}

/** What a request has besides its URL. */
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

  /** @param server an http or https URL, whose path comes before that of each request */
  constructor(private readonly server: string) {
    this.#http = server.startsWith('https:') ? https : http;
    this.#agent = new this.#http.Agent({ ...KEPT_CONNECTIONS, maxSockets: 16 });
  }

  /**
   * Sends a request.
   *
   * @param path with its query, behind the server's URL
   * @throws the errors of Node where there is no whole reply, and `signal.reason`
   */
  async send(path: string, { method, headers, body, signal }: HttpRequest): Promise<HttpReply> {
    signal.throwIfAborted();
    const response = await new Promise<http.IncomingMessage>((resolve, reject) => {
      const options = {
        method,
        agent: this.#agent,
        signal,
        headers: { ...headers, 'content-length': body?.length ?? 0 },
      };
      this.#http.request(`${this.server}${path}`, options, resolve).on('error', reject).end(body);
    });
    const chunks: Buffer[] = [];
    for await (const chunk of response) chunks.push(chunk);
    return {
      status: response.statusCode ?? 0,
      headers: response.headers,
      body: Buffer.concat(chunks).toString(),
    };
  }

  /** Closes the connections, also busy ones. */
  close(): void {
    this.#agent.destroy();
  }
}
