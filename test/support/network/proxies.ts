import { type DroppedReply, FaultProxy, type StallDirection } from './fault-proxy.js';

/** What a network does to connections, by one proxy or by several. */
export type ProxyFaults = Pick<FaultProxy, 'cut' | 'stall' | 'delay' | 'reset' | 'heal' | 'dropNextReply'>;

/** The proxies before several servers, as one: what happens to one of them happens to all. */
export function together(all: readonly FaultProxy[]): ProxyFaults {
  const each = (act: (proxy: FaultProxy) => void) => {
    for (const proxy of all) act(proxy);
  };
  return {
    cut: () => each((proxy) => proxy.cut()),
    stall: (direction: StallDirection) => each((proxy) => proxy.stall(direction)),
    delay: (ms: number) => each((proxy) => proxy.delay(ms)),
    reset: () => each((proxy) => proxy.reset()),
    heal: (options) => each((proxy) => proxy.heal(options)),
    /** That of the first one to lose a reply. */
    dropNextReply: (match): Promise<DroppedReply> => {
      const dropped = Promise.any(all.map((proxy) => proxy.dropNextReply(match)));
      dropped.catch(() => undefined);
      return dropped;
    },
  };
}

/** The first server, and the others, in a URL or a connect string of ZooKeeper. */
const SERVERS = /(?<=^|\/\/)([^:/]+):(\d+)[^/]*/;

const proxies: FaultProxy[] = [];

/**
 * The first server of a URL, or of a connect string of ZooKeeper, by way of a proxy. Ended by
 * {@link stopProxies}.
 */
export async function throughProxy(
  address: string,
): Promise<{ readonly proxy: FaultProxy; readonly through: string }> {
  const [, host, port] = SERVERS.exec(address) ?? [];
  if (host === undefined) throw new Error(`no HOST:PORT in ${address}`);
  const proxy = new FaultProxy();
  proxies.push(proxy);
  return { proxy, through: address.replace(SERVERS, `127.0.0.1:${await proxy.start(host, Number(port))}`) };
}

/** For `afterEach`. */
export async function stopProxies(): Promise<void> {
  await Promise.all(proxies.splice(0).map((proxy) => proxy.stop()));
}
