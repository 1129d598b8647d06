import { StoreSession } from '../../core/lease/session/store-session.js';
import { formatListenAddress, isLoopback, type ListenAddress } from '../../core/settings/listen-address.js';
import { openedStore, REQUEST_TIMEOUT_MS } from '../../node/runtime/opened-store.js';
import { QuickRandom } from '../../zookeeper/services/strategies.js';
import type { MetricsText } from '../http/node-app.js';
import { connectTo, isVisible } from '../kit/call.js';
import type { Io } from '../kit/io.js';
import type { Logger } from '../kit/log/logger.js';
import type { Settings } from '../settings/settings.js';
import { dnsMetrics } from './dns-metrics.js';
import { startDnsServer } from './dns-server.js';
import { hostNames } from './host-names.js';
import { replyTo } from './message.js';
import { storeView } from './store-view.js';
import { treeView } from './tree-view.js';
import { ABSENT, type DnsView } from './zone.js';

export interface OpenDnsOptions {
  readonly listen: ListenAddress;
  /** The option that the address comes from. */
  readonly label: string;
  readonly settings: Settings;
  readonly io: Pick<Io, 'clock' | 'random'>;
  readonly log: Pick<Logger, 'info' | 'warn'>;
  /** How to reach ZooKeeper. @default by the settings */
  readonly connect?: typeof connectTo;
}

/** DNS as the settings have it. */
interface OpenDns {
  readonly address: ListenAddress;
  readonly metrics: MetricsText;
  /** Ends it, and its connections. */
  close(): Promise<void>;
}

/**
 * Answers DNS from the ZooKeeper and the store of the settings, over its own connections. Resolves once it
 * listens, whether these are there or not.
 *
 * @throws {ConfigError} when it cannot listen there, or a setting turns out to be unusable
 */
export async function openDns(options: OpenDnsOptions): Promise<OpenDns> {
  const { listen: at, label, settings, io, log, connect = connectTo } = options;
  const { clock } = io;
  const {
    dnsDomain: domain = 'nodelease',
    dnsTtlMs = 0,
    dnsNegativeTtlMs = 1_000,
    dnsStaleMs: maxStaleMs = 600_000,
    zookeeper: toZooKeeper,
    provider,
  } = settings;
  const opened: { close(): unknown }[] = [];
  const keep = <T extends { close(): unknown }>(each: T): T => {
    opened.push(each);
    return each;
  };
  const close = async () => {
    for (const each of opened.splice(0).reverse()) await each.close();
  };
  try {
    const zookeeper = toZooKeeper && keep(await connect(toZooKeeper, io));
    const tree =
      zookeeper && keep(treeView({ zookeeper, clock, basePath: toZooKeeper.basePath, maxStaleMs }));
    const isRead = isVisible(settings) && provider === 'store';
    const store = isRead ? keep(await openedStore(settings, io)) : undefined;
    const session = store && new StoreSession(store, clock, REQUEST_TIMEOUT_MS);
    const leases = session && keep(storeView({ session, clock, maxStaleMs }));
    const hosts = keep(hostNames(clock));
    const view: DnsView = {
      service: (name) => tree?.service(name) ?? ABSENT,
      node: (id) => {
        const inTree = tree?.node(id) ?? ABSENT;
        if (inTree.kind === 'known' || inTree.kind === 'pending') return inTree;
        const inStore = leases?.node(id) ?? ABSENT;
        return inStore.kind === 'absent' ? inTree : inStore;
      },
      nodeIdOf: (taskId) => tree?.nodeIdOf(taskId),
      shard: (shard) => leases?.shard(shard) ?? ABSENT,
      addressesOf: hosts.addressesOf,
      staleMs: () => Math.max(tree?.staleMs() ?? 0, leases?.staleMs() ?? 0),
    };
    const zone = {
      domain,
      ttl: dnsTtlMs / 1_000,
      negativeTtl: dnsNegativeTtlMs / 1_000,
      view,
      random: new QuickRandom(io.random),
    };
    const metrics = dnsMetrics(view.staleMs);
    const server = await startDnsServer({
      at,
      label,
      clock,
      reply: (query, transport) => replyTo(query, zone, transport),
      onReply: metrics.count,
    });
    const { address } = keep(server);
    const where = formatListenAddress(address);
    log.info(`answering DNS for ${domain} at ${where}`);
    if (!isLoopback(address.host))
      log.warn(
        `every host that reaches ${where} can look up all services and nodes: a loopback address keeps others out`,
      );
    return { address, metrics, close };
  } catch (error) {
    await close();
    throw error;
  }
}
