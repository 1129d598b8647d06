import { once } from 'node:events';
import { createServer, type RequestListener, type Server } from 'node:http';
import { createServer as createTlsServer } from 'node:https';
import {
  type AddressInfo,
  createServer as createTcpServer,
  type Socket,
  type Server as TcpServer,
} from 'node:net';
import { systemClock, systemRandom } from '../../../../src/core/base/system.js';
import { newInstance } from '../../../../src/zookeeper/services/instance/new-instance.js';
import type { ServiceInstance } from '../../../../src/zookeeper/services/instance/service-instance.js';
import { fixedInstances } from '../../../../src/zookeeper/services/service-cache.js';
import { ServiceProvider } from '../../../../src/zookeeper/services/service-provider.js';
import { freePort } from '../../../support/servers/free-ports.js';

/** One instance of the service `orders`: a real server. */
export interface Backend {
  readonly instance: ServiceInstance;
  /** How many requests, or connections where it does not speak HTTP, have reached it. */
  readonly served: number;
  /** The connections that it has. */
  readonly sockets: ReadonlySet<Socket>;
}

export interface BackendOptions {
  readonly key?: string;
  readonly cert?: string;
}

/** The servers of one test, and the errors that were noted in it. */
export class Backends {
  readonly #servers: (Server | TcpServer)[] = [];
  readonly #sockets = new Set<Socket>();

  /** One that answers. Its own id is the body where the listener does nothing else. */
  async http(id: string, listener?: RequestListener, { key, cert }: BackendOptions = {}): Promise<Backend> {
    let served = 0;
    const answer: RequestListener = (request, response) => {
      served += 1;
      if (listener) return listener(request, response);
      request.resume();
      request.on('end', () => response.end(id));
    };
    const server = cert === undefined ? createServer(answer) : createTlsServer({ key, cert }, answer);
    // A connection that a slow test leaves idle is not closed in the moment of its next request.
    server.keepAliveTimeout = 0;
    return this.#listen(id, server, () => served, cert !== undefined);
  }

  /** One that does whatever it likes with a connection. */
  async tcp(id: string, listener: (socket: Socket) => void): Promise<Backend> {
    let served = 0;
    const server = createTcpServer((socket) => {
      served += 1;
      socket.on('error', () => {});
      listener(socket);
    });
    return this.#listen(id, server, () => served, false);
  }

  /** One that takes a request and cuts the connection without an answer. */
  resetting(id: string): Promise<Backend> {
    return this.tcp(id, (socket) => socket.once('data', () => socket.resetAndDestroy()));
  }

  /** One whose port refuses connections. */
  async refusing(id: string): Promise<Backend> {
    return { instance: instanceAt(id, await freePort()), served: 0, sockets: new Set() };
  }

  async close(): Promise<void> {
    const closed = this.#servers.splice(0).map((server) => new Promise((resolve) => server.close(resolve)));
    for (const socket of this.#sockets) socket.destroy();
    await Promise.all(closed);
  }

  async #listen(
    id: string,
    server: Server | TcpServer,
    served: () => number,
    secure: boolean,
  ): Promise<Backend> {
    const sockets = new Set<Socket>();
    server.on('connection', (socket: Socket) => {
      sockets.add(socket);
      this.#sockets.add(socket);
      socket.once('close', () => {
        sockets.delete(socket);
        this.#sockets.delete(socket);
      });
    });
    server.listen(0, '127.0.0.1');
    await once(server, 'listening');
    this.#servers.push(server);
    const { port } = server.address() as AddressInfo;
    return {
      instance: instanceAt(id, port, secure),
      sockets,
      get served() {
        return served();
      },
    };
  }
}

/**
 * A provider over a fixed list that remembers whose errors were noted. In turns, from the first one on, and
 * with none ever down where a test does not ask for it, so that each test knows who is asked.
 */
export class RecordingProvider extends ServiceProvider {
  readonly noted: string[] = [];

  constructor(backends: readonly Pick<Backend, 'instance'>[], downAfter = 1_000_000) {
    const source = fixedInstances(
      'orders',
      backends.map(({ instance }) => instance),
    );
    super({ source, clock: systemClock, random: { next: () => 0 }, downPolicy: { threshold: downAfter } });
  }

  override noteError(instance: ServiceInstance): void {
    this.noted.push(instance.id);
    super.noteError(instance);
  }
}

export function instanceAt(id: string, port: number, secure = false): ServiceInstance {
  const init = { name: 'orders', id, address: '127.0.0.1', ...(secure ? { sslPort: port } : { port }) };
  return newInstance(init, { clock: systemClock, random: systemRandom });
}
