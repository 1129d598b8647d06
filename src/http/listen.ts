import { createServer, type Server } from 'node:http';
import type { AddressInfo, Socket } from 'node:net';
import { getRequestListener } from '@hono/node-server';
import { withTimeout } from '../base/abort.js';
import type { Clock } from '../clock.js';
import { ConfigError } from '../errors.js';
import { nextTurn } from '../system.js';
import { Connections } from './connections.js';
import { FairShare } from './fair-share.js';
import { Intake } from './intake.js';
import { formatListenAddress, type ListenAddress } from './listen-address.js';
import { HttpProblem, problemResponse } from './problem.js';
import { RefusedBytes } from './refused-bytes.js';
import { Turnstile } from './turnstile.js';

/** What is listened for, where, and within which bounds. */
export interface ListenOptions {
  /** What answers: an app's `fetch`. */
  readonly fetch: (request: Request) => Response | Promise<Response>;
  readonly at: ListenAddress;
  /** The setting that the address comes from, as its user knows it. @default "listen" */
  readonly label?: string | undefined;
  readonly clock: Pick<Clock, 'sleep'>;
  /**
   * How many connections there may be. When they run short the one that has been unused for longest is closed, and while each has a request
   * under way further ones are. @default 1000
   */
  readonly maxConnections?: number | undefined;
  /** How many requests may be under way, from their beginning until the client has taken the answer; further ones get 503. @default 256 */
  readonly maxRequests?: number | undefined;
  /** Whether requests for this path are let in beyond that bound: they must be answered at once and with little, as health checks are. @default none */
  readonly isUrgent?: ((path: string) => boolean) | undefined;
  /**
   * For how long nothing may go through a connection with a request under way, in milliseconds: whoever does not take the answer is let go.
   * Without one it stays, for another request may be on its way.
   *
   * @default 30000
   */
  readonly silentMs?: number | undefined;
}

/** A server that answers. */
export interface HttpListener {
  /** Where it really listens: an IP address, and the port that was free. */
  readonly address: ListenAddress;
  /** `http://…`, without a slash at the end. */
  readonly url: string;
  /** Takes no more requests, and waits for those under way, for a second at the most. Never rejects; idempotent. */
  close(): Promise<void>;
}

/** A client may take that long to send the head of a request, in milliseconds. */
const HEAD_WITHIN_MS = 10_000;
/** And the whole of it. */
const REQUEST_WITHIN_MS = 30_000;
/** How often those are looked for that take longer. */
const CHECK_EVERY_MS = 1_000;
/** After how long TCP asks whether the other end of an idle connection is still there. */
const PROBE_AFTER_MS = 60_000;
const LARGEST_HEAD = 16_384;
const CLOSE_WITHIN_MS = 1_000;
const BUSY = 'too many requests are under way';

/**
 * Listens for HTTP. Every client is bounded, in connections, requests, time, and size; one that is slow does not hold up the others. The requests
 * that one connection sends ahead are answered one by one, in their order: a few wait, a few more get 503, and with still more it is closed.
 * Resolves once it listens.
 *
 * @throws {ConfigError} naming the setting when it cannot listen there: the port is taken, the address is not this machine's
 */
export async function listen(options: ListenOptions): Promise<HttpListener> {
  const { fetch, at, label = 'listen', clock, maxConnections = 1_000, maxRequests = 256, silentMs = 30_000, isUrgent } = options;
  const adapter = {
    hostname: at.host.includes(':') ? `[${at.host}]` : at.host,
    // Whoever only imports this library keeps the Request and Response that they had.
    overrideGlobalObjects: false,
    errorHandler: () => problemResponse(new HttpProblem('bad-request', 'the request: expected a host and a path, got something else')),
  };
  const answer = getRequestListener((request) => fetch(request), adapter);
  const refuse = getRequestListener(() => problemResponse(new HttpProblem('unavailable', BUSY, { 'retry-after': '1' })), adapter);
  const fairShare = new FairShare(nextTurn);
  const turnstile = new Turnstile(
    maxRequests,
    (request, response) => {
      fairShare.run(() => {
        if (request.socket.destroyed) return;
        if (!server.listening) response.setHeader('connection', 'close');
        void answer(request, response);
      });
    },
    (request, response) => void refuse(request, response),
    ({ url = '' }) => isUrgent?.(pathOf(url)) === true,
  );
  const connections = new Connections(maxConnections);
  const intake = new Intake(() => connections.all(), nextTurn);
  const refused = new RefusedBytes(clock, LARGEST_HEAD);
  const server = createServer(
    {
      maxHeaderSize: LARGEST_HEAD,
      headersTimeout: HEAD_WITHIN_MS,
      requestTimeout: REQUEST_WITHIN_MS,
      connectionsCheckingInterval: CHECK_EVERY_MS,
      // A request may be on its way when an idle connection is closed: only want of room is a reason to.
      keepAliveTimeout: 0,
      keepAlive: true,
      keepAliveInitialDelay: PROBE_AFTER_MS,
    },
    (request, response) => {
      // What had been read from a connection before it was closed is parsed to its end.
      if (request.socket.destroyed) return;
      intake.note();
      // A connection with its last answer under way is not idle when the server is closed, and becomes so afterwards.
      response.once('close', () => {
        connections.end(request.socket);
        if (!server.listening) server.closeIdleConnections();
      });
      connections.begin(request.socket);
      turnstile.admit(request, response);
    },
  );
  server.timeout = silentMs;
  server.on('timeout', (socket) => {
    if (connections.isBusy(socket)) socket.destroy();
  });
  server.maxConnections = maxConnections;
  server.on('connection', (socket) => connections.opened(socket));
  server.on('clientError', (error, socket) => refused.refuse(error, socket as Socket, connections.isBusy(socket as Socket)));
  const address = await listening(server, at, label);
  let closing: Promise<void> | undefined;
  return { address, url: `http://${formatListenAddress(address)}`, close: () => (closing ??= close(server, clock)) };
}

function listening(server: Server, at: ListenAddress, label: string): Promise<ListenAddress> {
  return new Promise((resolve, reject) => {
    server.once('error', (error: NodeJS.ErrnoException) => {
      const expected = EXPECTATIONS[error.code ?? ''];
      reject(expected === undefined ? error : new ConfigError(label, formatListenAddress(at), expected));
    });
    server.listen({ host: at.host, port: at.port }, () => {
      server.removeAllListeners('error');
      // Running out of file descriptors for a while, say: those who wait are taken later.
      server.on('error', () => {});
      const { address, port } = server.address() as AddressInfo;
      resolve({ host: address, port });
    });
  });
}

function pathOf(url: string): string {
  const query = url.indexOf('?');
  return query === -1 ? url : url.slice(0, query);
}

/** What would have been right, by the system's code for what is wrong. */
const EXPECTATIONS: Readonly<Record<string, string>> = {
  EADDRINUSE: 'a port that no other program listens on (this one is taken)',
  EACCES: 'a port that this user may listen on (those below 1024 are often reserved)',
  EPERM: 'a port that this user may listen on (those below 1024 are often reserved)',
  EADDRNOTAVAIL: 'an address of this machine',
  EAFNOSUPPORT: 'an address of a kind that this machine has',
  ENOTFOUND: 'a host name that has an address',
  EAI_AGAIN: 'a host name that can be looked up',
};

async function close(server: Server, clock: Pick<Clock, 'sleep'>): Promise<void> {
  const done = new Promise<void>((resolve) => server.close(() => resolve()));
  await withTimeout(clock, CLOSE_WITHIN_MS, done);
  server.closeAllConnections();
  await done;
}
