import type { ZooKeeper } from '../zookeeper/client/zookeeper.js';
import { AUDIT_COMMANDS } from './audit/audit-rows.js';
import { CONFIG_COMMANDS } from './configuration/config-rows.js';
import { DATA_DIR_COMMANDS } from './data-dir/data-dir-rows.js';
import { DNS_COMMANDS } from './dns/dns-rows.js';
import type { OpenDnsOptions } from './dns/open-dns.js';
import type { NodeAppPart } from './http/node-app.js';
import type { ZooKeeperCall } from './kit/call.js';
import type { Io } from './kit/io.js';
import { RECIPE_COMMANDS } from './recipes/recipe-rows.js';
import type { Settings } from './settings/settings.js';
import { SHARDS_COMMANDS } from './shards/shards-rows.js';
import { DATA_COMMANDS } from './shared-data/data-rows.js';

/** What a node id is held with, and what its command finds of that in its environment. */
export { ownHoldOptions, ownVariables } from './data-dir/held-data-dir.js';
/** Work on the lease that is done by programs that ask over HTTP. */
export { listening, NOT_INHERITED, programRoutes, programWork } from './shards/programs.js';

/** The commands of the products, in the order of the help. */
export const PRODUCT_COMMANDS = [
  ...AUDIT_COMMANDS,
  ...SHARDS_COMMANDS,
  ...DNS_COMMANDS,
  ...DATA_DIR_COMMANDS,
  ...RECIPE_COMMANDS,
  ...CONFIG_COMMANDS,
  ...DATA_COMMANDS,
];

/** What the view of a cluster follows in addition to leases and the discovery tree. */
export async function followedOf({ consoleLocks, consoleData, configRoot }: Settings) {
  const [
    { shardsReport },
    { locksReader: locksOf },
    { followedLocks },
    { followedData },
    { followedConfigurations },
  ] = await Promise.all([
    import('../node/shards/read-shards.js'),
    import('../node/locks/read-locks.js'),
    import('../zookeeper/recipes/standings.js'),
    import('../zookeeper/shared-data/report.js'),
    import('../zookeeper/configuration/fleet.js'),
  ]);
  const parts = {
    locks: consoleLocks && followedLocks(consoleLocks),
    data: consoleData && followedData(consoleData),
    configurations: followedConfigurations(configRoot),
  };
  return { shards: shardsReport, locksOf, parts };
}

interface ConsoleOptions extends Pick<Io, 'random'> {
  readonly zookeeper: ZooKeeper;
  readonly settings: Settings;
  readonly allowWrites: boolean | undefined;
  /** Whether it answers only to this machine, or to holders of the token. */
  readonly isPrivate: boolean;
}

/** What a console with ZooKeeper has: pages, and changes. */
export async function consoleParts(options: ConsoleOptions): Promise<readonly NodeAppPart[]> {
  const { settings, isPrivate, ...own } = options;
  const { consoleData: roots, configRoot: root, zookeeper } = settings;
  const [{ servicesPage }, { configurationsPage }, { dataWrites }] = await Promise.all([
    import('./services/services-api.js'),
    import('./configuration/configurations-api.js'),
    import('./shared-data/data-api.js'),
  ]);
  return [
    servicesPage({ ...own, basePath: zookeeper?.basePath }),
    // Secrets are on it.
    ...(isPrivate ? [configurationsPage({ ...own, root })] : []),
    ...(roots ? [dataWrites({ ...own, roots })] : []),
  ];
}

/** The module that reads and mends what the cluster has in its store next to the leases. */
export const clusterPart = () => import('./shards/shards-command.js');

/** DNS next to HTTP, where `--dns` asks for it. @throws {ConfigError} as `openDns` does */
export async function listenerFor(options: Omit<OpenDnsOptions, 'listen' | 'label'>) {
  const { dns: listen } = options.settings;
  if (listen === undefined) return undefined;
  const { openDns } = await import('./dns/open-dns.js');
  return openDns({ ...options, listen, label: '--dns' });
}

/** `nodelease discovery ls --locks PATH[,PATH]`. */
export async function listLocks(call: ZooKeeperCall, paths: string): Promise<number> {
  const { showLocks } = await import('./recipes/list-locks.js');
  return showLocks(call, paths);
}
