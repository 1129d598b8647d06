import { once } from 'node:events';
import { connect, createServer, type Server, type Socket } from 'node:net';
import { freePort } from '../servers/free-ports.js';
import { HttpRequestHeads } from './http-request-heads.js';
import { breakOff, ProxyLane } from './proxy-lane.js';

/** Which way bytes are held back. */
export type StallDirection = 'to-server' | 'to-client' | 'both';

/** What {@link FaultProxy.dropNextReply} did. */
export interface DroppedReply {
  /** The request's line and headers, as the client sent them. */
  readonly requestHead: string;
  /** The status of the answer that the client did not get. */
  readonly status: number;
}

interface Link {
  readonly client: Socket;
  readonly server: Socket;
  readonly toServer: ProxyLane;
  readonly toClient: ProxyLane;
}

interface PendingDrop {
  readonly match: (requestHead: string, body: string) => boolean;
  readonly resolve: (dropped: DroppedReply) => void;
  readonly reject: (error: Error) => void;
}

/**
 * A TCP proxy on 127.0.0.1 that does to connections what networks do: cuts, stalls, delays, resets, lost
 * replies.
 */
export class FaultProxy {
  readonly #links = new Set<Link>();
  #server: Server | undefined;
  #target = { host: '', port: 0 };
  #cut = false;
  #stalled: StallDirection | undefined;
  #delayMs = 0;
  #drops: PendingDrop[] = [];

  /**
   * Starts to listen, without any fault.
   *
   * @returns the port on 127.0.0.1
   */
  async start(targetHost: string, targetPort: number): Promise<number> {
    this.#target = { host: targetHost, port: targetPort };
    // Half-open connections are passed on as such: one side's end is not the other side's.
    this.#server = createServer({ allowHalfOpen: true, noDelay: true }, (client) => this.#accept(client));
    // After the end, too, clients that come back find no other server there.
    const port = await freePort();
    this.#server.listen(port, '127.0.0.1');
    await once(this.#server, 'listening');
    return port;
  }

  /** How many connections are open now, from the client's side or held open towards the server. */
  get connections(): number {
    return this.#links.size;
  }

  /** True while a stall holds something back. */
  get holds(): boolean {
    return [...this.#links].some(({ toServer, toClient }) => toServer.holds || toClient.holds);
  }

  /** Breaks every connection, and each new one as soon as it is made, until {@link heal}. */
  cut(): void {
    this.#cut = true;
    this.reset();
  }

  /**
   * Holds back bytes, ends and closures without a word, on open connections and on new ones, until
   * {@link heal}.
   */
  stall(direction: StallDirection): void {
    this.#stalled = direction;
    for (const { toServer, toClient } of this.#links) {
      if (direction !== 'to-client') toServer.stall();
      if (direction !== 'to-server') toClient.stall();
    }
  }

  /** Passes everything on `ms` milliseconds late, in either direction, in order; 0 ends it. */
  delay(ms: number): void {
    this.#delayMs = ms;
    for (const { toServer, toClient } of this.#links) {
      toServer.delay(ms);
      toClient.delay(ms);
    }
  }

  /** Resets (TCP RST) the open connections on both sides; new ones are welcome. */
  reset(): void {
    for (const link of [...this.#links]) this.#break(link);
  }

  /**
   * Ends all faults. Connections on which a stall holds something back are broken, so that nothing is
   * delivered late, unless `deliverHeld` asks for just that. Drops that found no request yet are given up.
   */
  heal(options: { readonly deliverHeld?: boolean } = {}): void {
    const stalled = this.#stalled !== undefined;
    this.#cut = false;
    this.#stalled = undefined;
    this.#delayMs = 0;
    for (const drop of this.#drops.splice(0))
      drop.reject(new Error('the proxy was healed before a matching request came'));
    for (const link of [...this.#links]) {
      if (stalled && !options.deliverHeld && (link.toServer.holds || link.toClient.holds)) {
        this.#break(link);
        continue;
      }
      link.toServer.release();
      link.toClient.release();
    }
  }

  /**
   * Lets the next matching HTTP request reach the server, waits until the server has answered it, and then
   * breaks the client's connection in place of passing the answer on. Of a PostgreSQL client each piece of what it
   * sends is a request: a statement with its values, in most cases.
   *
   * @param match decides by the request's line and headers, or by the text of such a piece
   * @returns resolves when it has happened
   * @throws Error when the server breaks the connection without an answer, or the proxy is healed or stopped
   * before
   */
  dropNextReply(match: (requestHead: string, body: string) => boolean): Promise<DroppedReply> {
    const dropped = new Promise<DroppedReply>((resolve, reject) =>
      this.#drops.push({ match, resolve, reject }),
    );
    // A test that fails before it awaits this must report its own error, not an unhandled rejection.
    dropped.catch(() => {});
    return dropped;
  }

  /** Breaks all connections and stops listening. Idempotent. */
  async stop(): Promise<void> {
    const server = this.#server;
    if (!server) return;
    this.#server = undefined;
    const closed = once(server, 'close');
    server.close();
    this.heal();
    this.cut();
    await closed;
  }

  #accept(client: Socket): void {
    client.on('error', () => {});
    if (this.#cut) {
      client.resetAndDestroy();
      return;
    }
    const server = connect({ ...this.#target, allowHalfOpen: true, noDelay: true });
    server.on('error', () => {});
    // The drop that has taken hold of this connection, and what the server has answered to it so far.
    let drop: { pending: PendingDrop; requestHead: string; reply: Buffer } | undefined;
    const onRequest = (requestHead: string, body: string) => {
      const at = this.#drops.findIndex(({ match }) => match(requestHead, body));
      const [pending] = at < 0 ? [] : this.#drops.splice(at, 1);
      if (pending) drop = { pending, requestHead, reply: Buffer.alloc(0) };
    };
    const heads = new HttpRequestHeads(onRequest);
    // PostgreSQL: the first message of a client begins with its length.
    let isHttp: boolean | undefined;
    const link: Link = {
      client,
      server,
      toServer: new ProxyLane(client, server, {
        stalled: this.#stalled === 'to-server' || this.#stalled === 'both',
        delayMs: this.#delayMs,
        onBytes: (bytes) => {
          isHttp ??= bytes[0] !== 0;
          if (isHttp) heads.push(bytes);
          else onRequest(bytes.toString('latin1'), '');
          return bytes;
        },
      }),
      toClient: new ProxyLane(server, client, {
        stalled: this.#stalled === 'to-client' || this.#stalled === 'both',
        delayMs: this.#delayMs,
        onBytes: (bytes) => {
          if (!drop) return bytes;
          drop.reply = Buffer.concat([drop.reply, bytes]);
          const { interim, status } = isHttp
            ? readReply(drop.reply)
            : { interim: Buffer.alloc(0), status: statusOf(drop.reply) };
          drop.reply = drop.reply.subarray(interim.length);
          if (status !== undefined) {
            drop.pending.resolve({ requestHead: drop.requestHead, status });
            drop = undefined;
            this.#break(link);
            return Buffer.alloc(0);
          }
          return interim;
        },
      }),
    };
    this.#links.add(link);
    server.on('close', () =>
      drop?.pending.reject(new Error('the connection was closed before the server answered')),
    );
    const closed = () => {
      if (client.destroyed && server.destroyed) this.#links.delete(link);
    };
    client.on('close', closed);
    server.on('close', closed);
  }

  #break(link: Link): void {
    const { client, server, toServer, toClient } = link;
    this.#links.delete(link);
    toServer.discard();
    toClient.discard();
    breakOff(client);
    breakOff(server);
  }
}

/** The message `ReadyForQuery` ends the answer of PostgreSQL. */
function statusOf(reply: Buffer): number | undefined {
  return reply.subarray(-6).toString('latin1').startsWith('Z\0\0\0\x05') ? 200 : undefined;
}

/**
 * Splits off the complete interim answers (100 Continue), which the client needs, and reads the final status
 * once its head is whole.
 */
function readReply(reply: Buffer): { interim: Buffer; status: number | undefined } {
  let from = 0;
  for (;;) {
    const end = reply.indexOf('\r\n\r\n', from, 'latin1');
    if (end < 0) return { interim: reply.subarray(0, from), status: undefined };
    const status = Number(reply.toString('latin1', from, end).split(' ', 2)[1]);
    if (!(status >= 100 && status < 200)) return { interim: reply.subarray(0, from), status };
    from = end + 4;
  }
}
