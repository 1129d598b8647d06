import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Socket } from 'node:net';

/** Maximum numbers: see `HTTP_LIMITS`. */
type RequestLimits = Readonly<Record<'connections' | 'requests' | 'requestsPerConnection', number>>;

/** What becomes of a request; a dropped one has no connection any more. */
type Admission = 'admitted' | 'refused' | 'dropped';

/**
 * Limits the connections and requests of a server. When connections run short, the one that has been idle for
 * longest is closed; where more than a quarter have never sent a request, the oldest of these, so that
 * clients that only open connections take none from the others. While each has a request under way there is
 * no room for another connection.
 */
export class RequestLimiter {
  /** The requests under way of each connection; the one that has been idle for longest comes first. */
  readonly #connections = new Map<Socket, number>();
  /** Connections without any request so far, the oldest first. */
  readonly #unused = new Set<Socket>();
  #requests = 0;

  constructor(private readonly limits: RequestLimits) {}

  /** Registers a new connection, and closes another one where there would be no room for the next. */
  opened(socket: Socket): void {
    this.#connections.set(socket, 0);
    this.#unused.add(socket);
    socket.once('close', () => this.#closed(socket));
    if (this.#connections.size >= this.limits.connections) this.#leastUsed(socket)?.destroy();
  }

  /**
   * Counts a request until its answer has been sent, or its connection has gone. An urgent one, such as a
   * health check, is not refused. A connection that sends more ahead than `requestsPerConnection` is dropped,
   * urgent requests included.
   */
  admit({ socket }: IncomingMessage, response: ServerResponse, isUrgent: boolean): Admission {
    const underWay = this.#connections.get(socket);
    // Node parses what it has read of a connection to its end, also after the connection was closed.
    if (underWay === undefined || socket.destroyed) return 'dropped';
    if (underWay >= this.limits.requestsPerConnection) {
      socket.destroy();
      return 'dropped';
    }
    const isRefused = this.#requests >= this.limits.requests && !isUrgent;
    this.#requests += 1;
    this.#connections.set(socket, underWay + 1);
    this.#unused.delete(socket);
    response.once('close', () => this.#answered(socket));
    return isRefused ? 'refused' : 'admitted';
  }

  /** Whether a request is under way. */
  isBusy(socket: Socket): boolean {
    return (this.#connections.get(socket) ?? 0) > 0;
  }

  #leastUsed(newest: Socket) {
    const candidates =
      this.#unused.size > this.limits.connections / 4 ? this.#unused : this.#connections.keys();
    for (const socket of candidates)
      if (socket !== newest && !socket.destroyed && !this.isBusy(socket)) return socket;
    return undefined;
  }

  #answered(socket: Socket) {
    const underWay = this.#connections.get(socket);
    if (underWay === undefined) return;
    this.#requests -= 1;
    // Its place in the order is that of the connection used last.
    this.#connections.delete(socket);
    this.#connections.set(socket, underWay - 1);
  }

  /**
   * An answer that waits for the one before it does not learn that its connection has gone: all of them end
   * here.
   */
  #closed(socket: Socket) {
    this.#requests -= this.#connections.get(socket) ?? 0;
    this.#connections.delete(socket);
    this.#unused.delete(socket);
  }
}
