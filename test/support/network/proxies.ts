import { FaultProxy } from './fault-proxy.js';

/** The first server, and the others, in a URL or a connect string of ZooKeeper. */
const SERVERS = /(?<=^|\/\/)([^:/]+):(\d+)[^/]*/;

const proxies: FaultProxy[] = [];

/** The first server of a URL, or of a connect string of ZooKeeper, by way of a proxy. Ended by {@link stopProxies}. */
export async function throughProxy(address: string): Promise<{ readonly proxy: FaultProxy; readonly through: string }> {
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
