import { startDns } from '../../dns/start-dns.js';
import { DnsMetrics } from '../../http/dns-metrics.js';
import { StoreSession } from '../../lease/session/store-session.js';
import { openedStore, REQUEST_TIMEOUT_MS } from '../../runtime/opened-store.js';
import { DEFAULT_BASE_PATH } from '../../services/service-path.js';
import { formatListenAddress, isLoopback, type ListenAddress } from '../../settings/listen-address.js';
import type { Settings } from '../../settings/settings.js';
import type { ZooKeeper } from '../../zookeeper/zookeeper.js';
import { connectTo } from '../kit/on-zookeeper.js';
import { isVisible } from '../node-http/own-cluster-view.js';
import type { Io } from '../terminal/io.js';

export interface OpenDnsOptions {
  readonly listen: ListenAddress;
  /** The option that the address comes from. */
  readonly label: string;
  readonly settings: Settings;
  readonly io: Pick<Io, 'clock' | 'random'>;
  readonly log: { readonly info: (message: string) => void; readonly warn: (message: string) => void };
  /** A session that stays open. @default its own, where the settings have ZooKeeper */
  readonly zookeeper?: ZooKeeper | undefined;
}

/** DNS as the settings have it. */
export interface OpenDns {
  readonly address: ListenAddress;
  readonly metrics: DnsMetrics;
  /** Ends it, and what it has opened. */
  close(): Promise<void>;
}

/**
 * Answers DNS from the ZooKeeper and the store of the settings, over its own connections. Resolves once it
 * listens, whether these are there or not.
 *
 * @throws {ConfigError} when it cannot listen there, or a setting turns out to be unusable
 */
export async function openDns(options: OpenDnsOptions): Promise<OpenDns> {
  const { listen, label, settings, io, log } = options;
  const { zookeeper: toZooKeeper, provider } = settings;
  const {
    dnsDomain: domain = 'nodelease',
    dnsTtlMs = 0,
    dnsNegativeTtlMs = 1_000,
    dnsStaleMs = 600_000,
  } = settings;
  const own = options.zookeeper ? undefined : toZooKeeper && (await connectTo(toZooKeeper, io));
  const store = isVisible(settings) && provider === 'store' ? await openedStore(settings, io) : undefined;
  const metrics = new DnsMetrics();
  const disconnect = async () => {
    await Promise.all([own?.close(), store?.close()]);
  };
  try {
    const dns = await startDns({
      ...{ ...io, listen, label, domain },
      ttl: Math.floor(dnsTtlMs / 1_000),
      negativeTtl: Math.floor(dnsNegativeTtlMs / 1_000),
      maxStaleMs: dnsStaleMs,
      zookeeper: options.zookeeper ?? own,
      basePath: toZooKeeper?.basePath ?? DEFAULT_BASE_PATH,
      session: store && new StoreSession(store, io.clock, REQUEST_TIMEOUT_MS),
      onReply: (reply) => metrics.count(reply),
    });
    metrics.staleMs = () => dns.staleMs;
    const at = formatListenAddress(dns.address);
    log.info(`answering DNS for ${domain} at ${at}`);
    if (!isLoopback(dns.address.host))
      log.warn(
        `every host that reaches ${at} can look up all services and nodes: a loopback address keeps others out`,
      );
    const close = async () => {
      await dns.close();
      await disconnect();
    };
    return { address: dns.address, metrics, close };
  } catch (error) {
    await disconnect();
    throw error;
  }
}
