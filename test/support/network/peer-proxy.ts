import { once } from 'node:events';
import { type AddressInfo, connect, createServer, type Server, type Socket } from 'node:net';

/**
 * Stands before a member of an etcd cluster and learns from the first request of a connection which member it
 * comes from.
 */
export class PeerProxy {
  readonly #links = new Map<Socket, string>();
  #cut: string | undefined;

  private constructor(
    private readonly server: Server,
    private readonly targetPort: number,
  ) {}

  static async start(targetPort: number): Promise<PeerProxy> {
    const server = createServer({ noDelay: true });
    const proxy = new PeerProxy(server, targetPort);
    server.on('connection', (client: Socket) => proxy.#accept(client));
    server.listen(0, '127.0.0.1');
    await once(server, 'listening');
    return proxy;
  }

  get port(): number {
    return (this.server.address() as AddressInfo).port;
  }

  /**
   * Breaks connections that come from the member of that id, in hex, or all, and takes no new ones of them,
   * until {@link heal}.
   */
  cut(from: string): void {
    this.#cut = from;
    for (const [client, member] of this.#links) if (this.#isCut(member)) client.destroy();
  }

  heal(): void {
    this.#cut = undefined;
  }

  async stop(): Promise<void> {
    const closed = once(this.server, 'close');
    this.server.close();
    for (const client of this.#links.keys()) client.destroy();
    await closed;
  }

  #isCut(member: string): boolean {
    return this.#cut === 'all' || this.#cut === member;
  }

  #accept(client: Socket): void {
    let head = Buffer.alloc(0);
    this.#links.set(client, '');
    client.on('error', () => {}).once('close', () => this.#links.delete(client));
    const onData = (bytes: Buffer) => {
      head = Buffer.concat([head, bytes]);
      if (!head.includes('\r\n\r\n')) return;
      client.off('data', onData).pause();
      const member = /^x-server-from: (\S+)/im.exec(head.toString('latin1'))?.[1] ?? '';
      this.#links.set(client, member);
      if (this.#isCut(member)) return void client.destroy();
      const server = connect({ host: '127.0.0.1', port: this.targetPort, noDelay: true });
      server.on('error', () => {}).once('close', () => client.destroy());
      client.once('close', () => server.destroy());
      server.write(head);
      client.pipe(server).pipe(client);
    };
    client.on('data', onData);
  }
}
