import { ConfigError } from '../../core/base/errors.js';
import type { DataDirSettings } from '../../core/data-dir/data-dir-settings.js';
import { ordinalOf } from '../../core/lease/hold/static-lease.js';
import { CLUSTER_DEFAULTS } from '../../core/lease/model/cluster-config.js';
import { leastGraceMs, MAX_NODE_IDS } from '../../core/lease/model/lease-state.js';
import { isLoopback } from '../../core/settings/listen-address.js';
import { parseInteger } from '../../core/settings/values.js';
import type { StoreAccess } from '../../core/store/store-access.js';
import type { StoreUrl } from '../../core/store/store-kind.js';
import { type CommandConfigSettings, readCommandConfig } from './command-config-settings.js';
import type { SettingName, SettingValue } from './settings-table.js';
import { find, firstFlag, type Given, read, readOrDefault, refuse, type SettingSources } from './sources.js';
import { readStoreAccess } from './store-access.js';
import { readZooKeeper, type ZooKeeperSettings } from './zookeeper-settings.js';

export type { DataDirSettings } from '../../core/data-dir/data-dir-settings.js';
export type { CommandConfigSettings } from './command-config-settings.js';
export { environmentName, SETTINGS, type SettingName } from './settings-table.js';
export { announcingProblem, type ZooKeeperSettings } from './zookeeper-settings.js';

/**
 * When a node id is retired: `stop`, the work is asked to end; `drain`, it continues until it ends by itself,
 * and gets no new work.
 */
export type RetirePolicy = SettingValue<'on-retire'>;

/** The settings that are read by themselves, by their fields. Absent: left to the cluster or the command. */
const PLAIN = {
  cluster: 'cluster',
  nodes: 'nodes',
  durationMs: 'duration',
  graceMs: 'grace',
  taskId: 'task-id',
  /** Without limit when it is absent. */
  acquireTimeoutMs: 'acquire-timeout',
  waitPollMs: 'wait-poll',
  sticky: 'sticky',
  preferId: 'prefer-id',
  stickyWaitMs: 'sticky-wait',
  /** At each renewal when it is absent. */
  settingsIntervalMs: 'settings-interval',
  onRetire: 'on-retire',
  dataRetention: 'data-retention',
  /** The paths of ZooKeeper whose locks the console shows. */
  consoleLocks: 'console-locks',
  /** The roots of Monastery's shared data that the console shows. */
  consoleData: 'console-data',
  /** The parent of all configuration in ZooKeeper that the console shows. */
  configRoot: 'config-root',
  /** Where to listen for HTTP requests; port 0 for any that is free. */
  http: 'http',
  bearerTokenFile: 'bearer-token-file',
  /** Where to answer DNS. */
  dns: 'dns',
  dnsDomain: 'dns-domain',
  dnsTtlMs: 'dns-ttl',
  dnsNegativeTtlMs: 'dns-negative-ttl',
  dnsStaleMs: 'dns-stale',
  /** Absent for what suits standard error: pretty on a terminal, else json. */
  logFormat: 'log-format',
} as const satisfies Readonly<Record<string, SettingName>>;

type PlainSettings = {
  readonly [Field in keyof typeof PLAIN]?: SettingValue<(typeof PLAIN)[Field]> | undefined;
};

/** The settings of one invocation: checked, typed, durations in milliseconds. */
export interface Settings extends PlainSettings, StoreAccess {
  readonly store: StoreUrl;
  /** Where node ids come from. */
  readonly provider: SettingValue<'provider'>;
  readonly logLevel: SettingValue<'log-level'>;
  /** The fixed node id that takes the place of a leased one. */
  readonly nodeId?: number | undefined;
  /** Present where the node takes part in the ownership of shards. */
  readonly shards?: ShardSettings | undefined;
  /** Present where there is a data directory. */
  readonly dataDir?: DataDirSettings | undefined;
  /** Present when there is discovery. */
  readonly zookeeper?: ZooKeeperSettings | undefined;
  /** Present where the command of `run` has its configuration from ZooKeeper. */
  readonly config?: CommandConfigSettings | undefined;
}

/** How many shards there are, and how long the stop of one may take. */
export interface ShardSettings {
  readonly count: number;
  readonly stopTimeoutMs: number;
}

/**
 * Reads all settings, and checks them and their relations. A flag wins over its environment variable.
 *
 * @throws {ConfigError} naming the setting as the user gave it, the value, and what was expected
 */
export function readSettings(sources: SettingSources): Settings {
  checkNoneEmpty(sources);
  const store = readOrDefault(sources, 'store');
  const nodeId = find(sources, 'node-id');
  const plain = Object.entries(PLAIN).map(([field, name]) => [field, read(sources, name)]);
  const settings: Settings = {
    ...(Object.fromEntries(plain) as PlainSettings),
    store,
    provider: readOrDefault(sources, 'provider'),
    logLevel: readOrDefault(sources, 'log-level'),
    nodeId: nodeId && staticNodeId(nodeId, sources.hostname),
    shards: readShards(sources),
    dataDir: readDataDir(sources),
    ...readStoreAccess(sources, store),
    zookeeper: readZooKeeper(sources),
    config: readCommandConfig(sources),
  };
  checkGrace(sources, settings);
  checkNodeId(sources, settings);
  checkNeeds(sources);
  checkProvider(sources, settings);
  return settings;
}

/**
 * An empty variable is a slip, such as a reference to another one that is not set, and must not have the
 * default used without a word.
 */
function checkNoneEmpty({ env }: SettingSources): void {
  const empty = Object.keys(env).find((name) => name.startsWith('NODELEASE_') && env[name] === '');
  if (empty !== undefined)
    throw new ConfigError(empty, '', 'a value (for the default, do not set the variable)');
}

/** What is asked for with a setting that is of no use alone. Other reads see to ZooKeeper and its TLS. */
const NEEDED = {
  'data-dir': '--data-dir ROOT with it',
  shards: '--shards N with it',
  sticky: '--sticky KEY with it',
  config: '--config APP with it (it is about the configuration of the command)',
  service: '--service with it (it is about an instance of a service)',
  check: '--check with it',
} as const;

function checkNeeds(sources: SettingSources): void {
  for (const [needed, expected] of Object.entries(NEEDED)) {
    // Of a command that announces nothing, --service-base-path is another setting.
    if (needed === 'service' && sources.announces === false) continue;
    const useless = firstFlag(sources, ({ needs }) => needs === needed);
    if (useless && !find(sources, needed as keyof typeof NEEDED)) refuse(useless, expected);
  }
}

function checkGrace(
  sources: SettingSources,
  { durationMs = CLUSTER_DEFAULTS.durationMs, graceMs }: Settings,
): void {
  const min = leastGraceMs(durationMs);
  const given = find(sources, 'grace');
  if (given && graceMs !== undefined && graceMs < min)
    refuse(given, `at least ${min}ms (a thousandth of the duration, since clocks drift)`);
}

function checkNodeId(sources: SettingSources, { nodeId, nodes }: Settings): void {
  const given = find(sources, 'node-id');
  if (given === undefined || nodeId === undefined) return;
  const store = find(sources, 'store');
  // A flag is meant for this run and wins over a store that the environment names for every run.
  if (store && !(given.flag && !store.flag)) {
    const why = 'a fixed id is not leased from a store, and may be held there by another task';
    refuse(given, `no ${store.label} with it (${why})`);
  }
  if (nodes !== undefined && nodeId >= nodes) {
    const ids = `${find(sources, 'nodes')?.label} ${nodes} makes the ids 0 to ${nodes - 1}`;
    refuse(given, `an id below ${nodes} (${ids})`);
  }
}

/** `--provider zookeeper` needs ZooKeeper, and nothing that is about leases in a store. */
function checkProvider(sources: SettingSources, { provider, zookeeper }: Settings): void {
  const given = find(sources, 'provider');
  if (given === undefined || provider === 'store') return;
  if (zookeeper === undefined)
    refuse(given, '--zookeeper with it, with the servers that give out the node ids');
  const useless = firstFlag(sources, ({ storeOnly }) => storeOnly === true);
  if (useless) refuse(useless, `no ${given.label} zookeeper with it (it is about leases in a store)`);
  // One of the two would be taken without a word, and a fixed id may be the one that ZooKeeper gives to
  // another task.
  const fixed = find(sources, 'node-id');
  if (fixed) refuse(fixed, `no ${given.label} zookeeper with it (a fixed id is not given out by anybody)`);
}

/**
 * The data directory, which a fixed node id has not: without versions, the directory of a stale holder looks
 * like any other.
 */
function readDataDir(sources: SettingSources): DataDirSettings | undefined {
  const given = find(sources, 'data-dir');
  const root = read(sources, 'data-dir');
  if (given === undefined || root === undefined) return undefined;
  const fixed = find(sources, 'node-id');
  if (fixed) refuse(given, `no ${fixed.label} with it (a fixed id has no versions)`);
  return {
    root,
    retention: readOrDefault(sources, 'data-retention'),
    exclude: read(sources, 'data-exclude') ?? [],
    copy: read(sources, 'data-copy') ?? false,
    local: read(sources, 'data-local') ?? false,
  };
}

/** Shards rest on a lease in a store, and the programs that run them say over HTTP when their work has ended. */
function readShards(sources: SettingSources): ShardSettings | undefined {
  const given = find(sources, 'shards');
  const count = read(sources, 'shards');
  if (given === undefined || count === undefined) return undefined;
  if (find(sources, 'node-id') || readOrDefault(sources, 'provider') === 'zookeeper')
    refuse(
      given,
      'a node id from a store with it (a fixed one, and one from ZooKeeper, have no lease there)',
    );
  const at = find(sources, 'http');
  if (at && !isLoopback(read(sources, 'http')?.host ?? '') && !find(sources, 'bearer-token-file'))
    refuse(
      at,
      'a loopback address such as 127.0.0.1:7070, or a bearer token file, with --shards (any client that reaches it could say that the work on a shard has ended)',
    );
  return { count, stopTimeoutMs: readOrDefault(sources, 'shard-stop-timeout') };
}

function staticNodeId(given: Given, hostname: string): number {
  const { text, label } = given;
  const max = MAX_NODE_IDS - 1;
  if (text !== 'hostname') {
    if (!/^\d+$/.test(text)) refuse(given, `a whole number from 0 to ${max}, or "hostname"`);
    return parseInteger(text, label, 0, max);
  }
  try {
    return parseInteger(String(ordinalOf(hostname)), label, 0, max);
  } catch (cause) {
    if (!(cause instanceof ConfigError)) throw cause;
    throw new ConfigError(
      `${label} hostname`,
      hostname,
      `a host name that ends in an ordinal from 0 to ${max}, such as web-3`,
    );
  }
}
