import { setTimeout as sleep } from 'node:timers/promises';
import { etcdCall } from '../etcd-admin.js';
import { PeerProxy } from '../network/peer-proxy.js';
import { type EtcdProcess, type EtcdVersion, prepareEtcd } from './etcd-process.js';
import { freePorts } from './free-ports.js';

const ELECTED_WITHIN_MS = 30_000;

/** Three servers that make one cluster, each under a test's control. */
export interface EtcdCluster {
  /** All of the servers, `127.0.0.1:PORT,127.0.0.1:PORT,…`. */
  readonly address: string;
  readonly servers: readonly EtcdProcess[];
  /**
   * Resolves to the server that leads the majority, as soon as one does.
   * @throws Error when none does within 30 s
   */
  leader(): Promise<EtcdProcess>;
  /** Cuts a server off from the others, until {@link heal}. Clients reach it all the same. */
  isolate(server: EtcdProcess): void;
  heal(): void;
  /** Ends all of them for good and removes their folders. Idempotent. */
  stop(): Promise<void>;
}

/** Starts a cluster; it has a leader when it resolves. @throws Error when it does not get ready */
export async function startEtcdCluster(version: EtcdVersion = '3.5'): Promise<EtcdCluster> {
  const size = 3;
  const ports = await freePorts(2 * size);
  const proxies = await Promise.all(ports.slice(size).map((port) => PeerProxy.start(port)));
  const cluster = proxies.map(({ port }, index) => `m${index}=http://127.0.0.1:${port}`).join(',');
  const servers = await Promise.all(
    proxies.map(({ port: advertisedPort }, index) => {
      const [clientPort = 0, peerPort = 0] = [ports[index], ports[size + index]];
      return prepareEtcd({
        version,
        member: { name: `m${index}`, clientPort, peerPort, advertisedPort, cluster },
      });
    }),
  );
  const views = () =>
    Promise.all(
      servers.map(async ({ endpoint }) => {
        const ask = AbortSignal.timeout(1_000);
        const status = await etcdCall(endpoint, 'maintenance/status', {}, { signal: ask }).catch(
          () => undefined,
        );
        const { member_id: own } = (status?.header ?? {}) as { member_id?: string };
        return { own, leader: status?.leader as string | undefined };
      }),
    );
  /** In hex, as members send it to each other. */
  const ids = new Map<EtcdProcess, string>();
  const self: EtcdCluster = {
    address: servers.map(({ address }) => address).join(','),
    servers,
    async leader() {
      for (
        const deadline = performance.now() + ELECTED_WITHIN_MS;
        performance.now() < deadline;
        await sleep(50)
      ) {
        const all = await views();
        const leads = (own: string | undefined) =>
          own !== undefined && all.filter(({ leader }) => leader === own).length * 2 > size;
        const found = servers[all.findIndex(({ own }) => leads(own))];
        if (found !== undefined) return found;
      }
      throw new Error(`no leader among ${self.address} within ${ELECTED_WITHIN_MS} ms`);
    },
    isolate(server) {
      const id = ids.get(server) as string;
      for (const [index, proxy] of proxies.entries()) proxy.cut(servers[index] === server ? 'all' : id);
    },
    heal: () => {
      for (const proxy of proxies) proxy.heal();
    },
    stop: async () => {
      await Promise.all(servers.map((server) => server.dispose()));
      await Promise.all(proxies.map((proxy) => proxy.stop()));
    },
  };
  try {
    await Promise.all(servers.map((server) => server.start()));
    await self.leader();
    for (const server of servers) ids.set(server, await memberId(server));
    return self;
  } catch (error) {
    await self.stop();
    throw error;
  }
}

async function memberId({ endpoint }: EtcdProcess): Promise<string> {
  const { header } = (await etcdCall(
    endpoint,
    'maintenance/status',
    {},
    { signal: AbortSignal.timeout(ELECTED_WITHIN_MS) },
  )) as {
    header: { member_id: string };
  };
  return BigInt(header.member_id).toString(16);
}
