import type { Clock, RandomSource } from '../base/clock.js';
import type { StoreSession } from '../lease/session/store-session.js';
import type { ListenAddress } from '../settings/listen-address.js';
import type { ZooKeeper } from '../zookeeper/zookeeper.js';
import { type DnsServer, type DnsServerOptions, startDnsServer } from './dns-server.js';
import { HostNames } from './host-names.js';
import { replyTo } from './message.js';
import { StoreView } from './store-view.js';
import { TreeView } from './tree-view.js';
import type { DnsView, ZoneSettings } from './zone.js';

export interface DnsOptions extends ZoneSettings, Pick<DnsServerOptions, 'label' | 'onReply'> {
  readonly listen: ListenAddress;
  readonly clock: Clock;
  readonly random: RandomSource;
  /** After how long without news nothing is answered, in milliseconds. */
  readonly maxStaleMs: number;
  /** Where the services and the nodes are. The caller closes it. @default there are no services */
  readonly zookeeper?: ZooKeeper | undefined;
  /** The parent of the services, within the chroot. */
  readonly basePath: string;
  /** Where the shards are, and the nodes that ZooKeeper does not know. @default there are no shards */
  readonly session?: StoreSession | undefined;
}

/** Names that are answered. */
export interface Dns extends Omit<DnsServer, 'close'> {
  /** How long changes may have gone unnoticed, in milliseconds; 0 while every change is seen. */
  readonly staleMs: number;
  /** Never rejects. */
  close(): Promise<void>;
}

/**
 * Answers the names of services, nodes and shards. Resolves once it listens, whether ZooKeeper and the store
 * are there or not.
 *
 * @throws {ConfigError} naming the setting when it cannot listen there
 */
export async function startDns(options: DnsOptions): Promise<Dns> {
  const { zookeeper, session, clock, listen: at, label, onReply } = options;
  const tree = zookeeper && new TreeView({ ...options, zookeeper });
  const store = session && new StoreView({ ...options, session });
  const hosts = new HostNames(clock);
  const view: DnsView = {
    service: (name) => tree?.service(name),
    node: (id) => {
      const found = tree?.node(id);
      return found === undefined || found === 'unknown' ? (store?.node(id) ?? found) : found;
    },
    shard: (shard) => store?.shard(shard),
    addressesOf: (host) => hosts.addressesOf(host),
    get staleMs() {
      return Math.max(tree?.staleMs ?? 0, store?.staleMs ?? 0);
    },
  };
  const zone = { ...options, view };
  const close = async () => {
    tree?.close();
    hosts.close();
    await store?.close();
  };
  try {
    const reply: DnsServerOptions['reply'] = (query, transport) => replyTo(query, zone, transport);
    const server = await startDnsServer({ at, label, clock, reply, onReply });
    return {
      address: server.address,
      get staleMs() {
        return view.staleMs;
      },
      close: () => {
        server.close();
        return close();
      },
    };
  } catch (error) {
    await close();
    throw error;
  }
}
