import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { getRequestListener } from '@hono/node-server';
import { withTimeout } from '../../../core/base/abort.js';
import { checked, FUNCTION, maybe, TEXT, whole } from '../../../core/base/arguments.js';
import type { Clock } from '../../../core/base/clock.js';
import { ConfigError } from '../../../core/base/errors.js';
import { systemClock } from '../../../core/base/system.js';
import {
  checkListenAddress,
  formatListenAddress,
  type ListenAddress,
} from '../../../core/settings/listen-address.js';
import { ADAPTER, problemResponse, unavailable } from '../problem.js';
import { HTTP_LIMITS } from './http-limits.js';
import { RequestLimiter } from './request-limiter.js';

/** Settings of {@link listen}. */
export interface ListenOptions {
  /** Answers a request: an app's `fetch`. The bindings are Node's own request and response. */
  readonly fetch: (request: Request, bindings: object) => Response | Promise<Response>;
  readonly at: ListenAddress;
  /** The setting that the address comes from, as its user knows it. @default "listen" */
  readonly label?: string | undefined;
  /** @default the clock of this machine */
  readonly clock?: Clock | undefined;
  /**
   * Maximum number of connections. When they run short an idle one is closed; while each has a request under
   * way, further ones.
   * @default 1000
   */
  readonly maxConnections?: number | undefined;
  /**
   * Maximum number of requests under way, until the client has taken the answer; further ones get 503.
   * @default 256
   */
  readonly maxRequests?: number | undefined;
  /**
   * Whether requests for this path are exempt from that bound, for health checks: their answers must be quick
   * and small.
   * @default none
   */
  readonly isUrgent?: ((path: string) => boolean) | undefined;
  /**
   * Silence after which a connection with a request under way is closed, in milliseconds; an idle one stays.
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
  /**
   * Takes no more requests, and waits for those under way, for a second at most. Never rejects; idempotent.
   */
  close(): Promise<void>;
}

const KINDS = {
  fetch: FUNCTION,
  label: maybe(TEXT),
  isUrgent: maybe(FUNCTION),
  maxConnections: maybe(whole(1)),
  maxRequests: maybe(whole(1)),
};

/**
 * Listens for HTTP, within Node's own time-outs and the numbers of http-limits.ts. Node itself answers what
 * is no proper request. Resolves once it listens.
 *
 * @throws {ConfigError} naming the setting when it cannot listen there: the port is taken, the address is not
 * this machine's
 */
export async function listen(options: ListenOptions): Promise<HttpListener> {
  const {
    fetch,
    at,
    label = 'listen',
    clock = systemClock,
    isUrgent = () => false,
    maxConnections = HTTP_LIMITS.connections,
    maxRequests = HTTP_LIMITS.requests,
    silentMs = HTTP_LIMITS.silenceMs,
  } = checked(options, KINDS);
  checkListenAddress(at, 'at');
  const adapter = { ...ADAPTER, hostname: at.host.includes(':') ? `[${at.host}]` : at.host };
  const busy = unavailable('too many requests are under way');
  const answer = getRequestListener(fetch, adapter);
  const refuse = getRequestListener(() => problemResponse(busy), adapter);
  const limiter = new RequestLimiter({ ...HTTP_LIMITS, connections: maxConnections, requests: maxRequests });
  const server = createServer(
    {
      maxHeaderSize: HTTP_LIMITS.headBytes,
      headersTimeout: HTTP_LIMITS.headTimeoutMs,
      requestTimeout: HTTP_LIMITS.requestTimeoutMs,
      connectionsCheckingInterval: HTTP_LIMITS.checkIntervalMs,
      // A health check may be on its way when an idle connection is closed: only a lack of connections is a
      // reason for that.
      keepAliveTimeout: 0,
      keepAlive: true,
      keepAliveInitialDelay: HTTP_LIMITS.probeAfterMs,
    },
    (request, response) => {
      const [path = ''] = (request.url ?? '').split('?', 1);
      const admission = limiter.admit(request, response, isUrgent(path));
      if (admission === 'dropped') return;
      if (!server.listening) response.setHeader('connection', 'close');
      // A connection with an answer under way when the server is closed becomes idle later.
      response.once('close', () => server.listening || server.closeIdleConnections());
      void (admission === 'admitted' ? answer : refuse)(request, response);
    },
  );
  server.timeout = silentMs;
  server.on('timeout', (socket) => limiter.isBusy(socket) && socket.destroy());
  server.maxConnections = maxConnections;
  server.on('connection', (socket) => limiter.opened(socket));
  const address = await listening(server, at, label);
  let closing: Promise<void> | undefined;
  return {
    address,
    url: `http://${formatListenAddress(address)}`,
    close: () => (closing ??= close(server, clock)),
  };
}

function listening(server: Server, at: ListenAddress, label: string): Promise<ListenAddress> {
  return new Promise((resolve, reject) => {
    server.once('error', (error) => reject(listenProblem(error, at, label)));
    server.listen({ host: at.host, port: at.port }, () => {
      server.removeAllListeners('error');
      // Such as a lack of file descriptors for a while: clients that wait are accepted later.
      server.on('error', () => {});
      const { address, port } = server.address() as AddressInfo;
      resolve({ host: address, port });
    });
  });
}

/** Why a server cannot listen, as an error of the setting; as it is where that is not the reason. */
export function listenProblem(error: unknown, at: ListenAddress, label: string): unknown {
  const expected = EXPECTATIONS[(error as NodeJS.ErrnoException).code ?? ''];
  return expected === undefined ? error : new ConfigError(label, formatListenAddress(at), expected);
}

/** The expected value, by the system's code for what is wrong. */
const EXPECTATIONS: Readonly<Record<string, string>> = {
  EADDRINUSE: 'a port that no other program listens on (this one is taken)',
  EACCES: 'a port that this user may listen on (those below 1024 are often reserved)',
  EPERM: 'a port that this user may listen on (those below 1024 are often reserved)',
  EADDRNOTAVAIL: 'an address of this machine',
  EINVAL: 'an address of this machine, a link-local one with its zone, such as [fe80::1%eth0]:8080',
  EAFNOSUPPORT: 'an address of a kind that this machine has',
  ENOTFOUND: 'a host name that has an address',
  EAI_AGAIN: 'a host name that can be looked up',
};

async function close(server: Server, clock: Pick<Clock, 'sleep'>) {
  const done = new Promise<void>((resolve) => server.close(() => resolve()));
  await withTimeout(clock, HTTP_LIMITS.closeMs, done);
  server.closeAllConnections();
  await done;
}
