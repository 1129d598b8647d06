import { createSocket, type RemoteInfo, type SocketOptions, type Socket as UdpSocket } from 'node:dgram';
import { once } from 'node:events';
import { type AddressInfo, createServer, isIPv6, type Server, type Socket } from 'node:net';
import { withTimeout } from '../../core/base/abort.js';
import type { Clock } from '../../core/base/clock.js';
import type { ListenAddress } from '../../core/settings/listen-address.js';
import { listenProblem } from '../http/server/listen.js';
import type { Reply, Transport } from './message.js';

interface DnsServerOptions {
  readonly at: ListenAddress;
  /** The setting that the address comes from, as its user knows it. */
  readonly label: string;
  readonly clock: Pick<Clock, 'sleep' | 'monotonic'>;
  /** Must not throw. */
  readonly reply: (query: Buffer, transport: Transport) => Reply | undefined;
  /** Receives each reply that is sent. Must not throw. */
  readonly onReply?: ((reply: Reply) => void) | undefined;
}

/** A server that answers. */
export interface DnsServer {
  /** Where it really listens, by UDP and TCP: an IP address, and the port that was free. */
  readonly address: ListenAddress;
  /** Idempotent. */
  close(): void;
}

/** How long a reply may wait for facts, in milliseconds, and how many may at a time. */
const WAIT_MS = 2_000;
const MAX_WAITING = 1_000;
const MAX_CONNECTIONS = 256;
/** How long a connection may take for its next message, or for the reply to one, in milliseconds. */
const MESSAGE_MS = 10_000;

/**
 * Answers by UDP and TCP (RFC 7766). Resolves once it listens.
 *
 * @throws {ConfigError} naming the setting when it cannot listen there
 */
export async function startDnsServer(options: DnsServerOptions): Promise<DnsServer> {
  const { at, label } = options;
  const tcp = createServer({ noDelay: true, allowHalfOpen: true });
  const opened: (Server | UdpSocket)[] = [tcp];
  try {
    tcp.listen(at);
    await once(tcp, 'listening');
    const { address, port } = tcp.address() as AddressInfo;
    const type = isIPv6(address) ? 'udp6' : 'udp4';
    // Clients are known by addresses: nothing is looked up.
    const lookup: SocketOptions['lookup'] = (client, _, found) => found(null, client, 0);
    const udp = createSocket({ type, lookup });
    opened.push(udp);
    const listening = once(udp, 'listening');
    udp.bind({ address, port });
    await listening;
    return answering(udp, tcp, options);
  } catch (error) {
    for (const each of opened) each.close();
    throw listenProblem(error, at, label);
  }
}

function answering(udp: UdpSocket, tcp: Server, options: DnsServerOptions): DnsServer {
  const give = giving(options);
  // Such as a client that is gone, or a lack of buffers for a while: the client asks again.
  for (const server of [udp, tcp]) server.on('error', () => undefined);
  let isClosed = false;
  udp.on('message', (query: Buffer, { port, address }: RemoteInfo) =>
    give(query, 'udp', (reply) => {
      // A forged query may come from a port that nothing can be sent to.
      if (reply && port > 0 && !isClosed) udp.send(reply.bytes, port, address);
    }),
  );
  const sockets = new Set<Socket>();
  /** Those without a whole message, in the order in which they have begun to wait for one. */
  const waiting = new Set<Socket>();
  tcp.on('connection', (socket) => {
    sockets.add(socket);
    socket.once('close', () => sockets.delete(socket));
    const [oldest = socket] = waiting;
    // Clients that are slow, or silent, shut no other one out.
    if (sockets.size > MAX_CONNECTIONS) {
      sockets.delete(oldest);
      waiting.delete(oldest);
      oldest.destroy();
    }
    void serve(socket, give, waiting, options);
  });
  const { address: host, port } = udp.address();
  const close = () => {
    if (isClosed) return;
    isClosed = true;
    udp.close();
    tcp.close();
    for (const socket of sockets) socket.destroy();
  };
  return { address: { host, port }, close };
}

/** Answers the queries of a connection one after the other, as fast as the client takes the replies. */
async function serve(
  socket: Socket,
  give: Give,
  waiting: Set<Socket>,
  { clock }: DnsServerOptions,
): Promise<void> {
  const queries = queriesOf(socket);
  const answerNext = async (): Promise<boolean> => {
    waiting.add(socket);
    const { value: query } = await queries.next();
    waiting.delete(socket);
    if (query === undefined) return false;
    const reply = await new Promise<Reply | undefined>((resolve) => give(query, 'tcp', resolve));
    if (reply === undefined) return false;
    const length = Buffer.alloc(2);
    length.writeUInt16BE(reply.bytes.length);
    // One write: some clients take the length and the message for one segment (RFC 7766, 8).
    if (!socket.write(Buffer.concat([length, reply.bytes]))) await once(socket, 'drain');
    return true;
  };
  try {
    let isOpen: boolean | undefined = true;
    while (isOpen) isOpen = await withTimeout(clock, MESSAGE_MS, answerNext());
  } catch {
    // The client has gone.
  }
  waiting.delete(socket);
  if (socket.readableEnded) socket.end();
  else socket.destroy();
}

/** The messages of a connection, without their lengths. */
async function* queriesOf(socket: Socket): AsyncGenerator<Buffer, undefined> {
  let rest = Buffer.alloc(0);
  for await (const chunk of socket) {
    rest = Buffer.concat([rest, chunk as Buffer]);
    for (let end = endOf(rest); end <= rest.length; end = endOf(rest)) {
      yield rest.subarray(2, end);
      rest = rest.subarray(end);
    }
  }
}

/** Where the first message ends; beyond what there is while its length is not known. */
function endOf(bytes: Buffer): number {
  return bytes.length < 2 ? Number.POSITIVE_INFINITY : 2 + bytes.readUInt16BE(0);
}

/** Calls `send` once, with undefined for what is not answered: at once where the facts are known. */
type Give = (query: Buffer, transport: Transport, send: (reply: Reply | undefined) => void) => void;

/** Makes replies, some of them again when more is known. */
function giving({ clock, reply, onReply }: DnsServerOptions): Give {
  let waiting = 0;
  const inTime = async (query: Buffer, transport: Transport, first: Reply) => {
    const until = clock.monotonic() + WAIT_MS;
    let last: Reply | undefined = first;
    waiting += 1;
    // A name may need the list of services, the instances of one, and the addresses of a host name.
    for (let leftMs = WAIT_MS; last?.again && leftMs > 0; leftMs = until - clock.monotonic()) {
      await withTimeout(clock, leftMs, last.again).catch(() => undefined);
      last = reply(query, transport);
    }
    waiting -= 1;
    return last;
  };
  return (query, transport, send) => {
    const first = reply(query, transport);
    const finish = (last: Reply | undefined) => {
      if (last) onReply?.(last);
      send(last);
    };
    if (first?.again === undefined || waiting >= MAX_WAITING) finish(first);
    else void inTime(query, transport, first).then(finish);
  };
}
