import { ConfigError } from '../base/errors.js';
import { ordinalOf } from '../lease/hold/static-lease.js';
import { CLUSTER_DEFAULTS } from '../lease/model/cluster-config.js';
import { leastGraceMs, MAX_NODE_IDS } from '../lease/model/lease-state.js';
import type { EtcdAccess } from '../store/etcd/etcd-access.js';
import { type StoreUrl, takesEndpoint } from '../store/store-url.js';
import { type CommandConfigSettings, readCommandConfig } from './command-config-settings.js';
import type { DataDirSettings } from './data-dir-settings.js';
import { readEndpoints } from './endpoints.js';
import { readEtcd } from './etcd-settings.js';
import type { ListenAddress } from './listen-address.js';
import type { SettingValue } from './settings-table.js';
import { find, firstFlag, type Given, read, readOrDefault, type SettingSources } from './sources.js';
import { parseInteger } from './values.js';
import { readZooKeeper, type ZooKeeperSettings } from './zookeeper-settings.js';

export type { CommandConfigSettings } from './command-config-settings.js';
export type { DataDirSettings } from './data-dir-settings.js';
export { environmentName, SETTINGS, type SettingName } from './settings-table.js';
export { announcingProblem, type ZooKeeperSettings } from './zookeeper-settings.js';

/** How much is logged. */
export type LogLevel = SettingValue<'log-level'>;
/** How log lines look: `json`, one object a line; `pretty`, for people. */
export type LogFormat = SettingValue<'log-format'>;
/**
 * When a node id is retired: `stop`, the work is asked to end; `drain`, it goes on until it ends by itself,
 * and gets no new work.
 */
export type RetirePolicy = SettingValue<'on-retire'>;
/** Where node ids come from. */
export type NodeIdProvider = SettingValue<'provider'>;

/**
 * The settings of one invocation: checked, typed, durations in milliseconds. What is absent is left to the
 * cluster, or to the command.
 */
export interface Settings {
  readonly store: StoreUrl;
  readonly provider: NodeIdProvider;
  readonly logLevel: LogLevel;
  /** Absent for what suits standard error: pretty on a terminal, else json. */
  readonly logFormat?: LogFormat | undefined;
  /** The fixed node id that takes the place of a leased one. */
  readonly nodeId?: number | undefined;
  readonly cluster?: SettingValue<'cluster'> | undefined;
  readonly nodes?: number | undefined;
  readonly durationMs?: number | undefined;
  readonly graceMs?: number | undefined;
  readonly taskId?: string | undefined;
  /** Without limit when it is absent. */
  readonly acquireTimeoutMs?: number | undefined;
  readonly waitPollMs?: number | undefined;
  /** At each renewal when it is absent. */
  readonly settingsIntervalMs?: number | undefined;
  readonly onRetire?: RetirePolicy | undefined;
  /** Present where there is a data directory. */
  readonly dataDir?: DataDirSettings | undefined;
  readonly dataRetention?: number | undefined;
  /** The server of a store that takes one. */
  readonly endpoint?: string | undefined;
  readonly region?: string | undefined;
  /** How to get into the etcd cluster. */
  readonly etcd?: EtcdAccess | undefined;
  /** Present when there is discovery. */
  readonly zookeeper?: ZooKeeperSettings | undefined;
  /** Present where the command of `run` has its configuration from ZooKeeper. */
  readonly config?: CommandConfigSettings | undefined;
  /** The paths of ZooKeeper whose locks the console shows. */
  readonly consoleLocks?: readonly string[] | undefined;
  /** The roots of Monastery's shared data that the console shows. */
  readonly consoleData?: readonly string[] | undefined;
  /** The parent of all configuration in ZooKeeper that the console shows. */
  readonly configRoot?: string | undefined;
  /** Where to listen for HTTP requests; port 0 for any that is free. */
  readonly http?: ListenAddress | undefined;
  readonly bearerTokenFile?: string | undefined;
}

/**
 * Reads all settings, and checks them and their relations. A flag wins over its environment variable.
 *
 * @throws {ConfigError} naming the setting as the user gave it, the value, and what was expected
 */
export function readSettings(sources: SettingSources): Settings {
  checkNoneEmpty(sources);
  const store = readOrDefault(sources, 'store');
  const provider = readOrDefault(sources, 'provider');
  const nodeId = find(sources, 'node-id');
  const { url: server, names } = readEndpoints(sources);
  const settings = {
    ...{ store, provider, logLevel: readOrDefault(sources, 'log-level') },
    cluster: read(sources, 'cluster'),
    nodes: read(sources, 'nodes'),
    nodeId: nodeId && staticNodeId(nodeId, sources.hostname),
    durationMs: read(sources, 'duration'),
    graceMs: read(sources, 'grace'),
    taskId: read(sources, 'task-id'),
    acquireTimeoutMs: read(sources, 'acquire-timeout'),
    waitPollMs: read(sources, 'wait-poll'),
    settingsIntervalMs: read(sources, 'settings-interval'),
    onRetire: read(sources, 'on-retire'),
    dataDir: readDataDir(sources),
    dataRetention: read(sources, 'data-retention'),
    endpoint: takesEndpoint(store) ? server?.text : undefined,
    region: read(sources, 'region'),
    etcd: readEtcd(sources, store),
    zookeeper: readZooKeeper(sources, names),
    config: readCommandConfig(sources),
    consoleLocks: read(sources, 'console-locks'),
    consoleData: read(sources, 'console-data'),
    configRoot: read(sources, 'config-root'),
    http: read(sources, 'http'),
    bearerTokenFile: read(sources, 'bearer-token-file'),
    logFormat: read(sources, 'log-format'),
  };
  checkGrace(sources, settings);
  checkNodeId(sources, settings);
  const storeGiven = find(sources, 'store');
  if (server && !takesEndpoint(store) && (server.flag || !storeGiven?.flag)) {
    throw new ConfigError(
      server.label,
      server.text,
      `no endpoint with the store ${store.url} (only s3:, azblob: and gs: have one)`,
    );
  }
  checkProvider(sources, settings, server);
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

function checkGrace(
  sources: SettingSources,
  { durationMs = CLUSTER_DEFAULTS.durationMs, graceMs }: Settings,
): void {
  const min = leastGraceMs(durationMs);
  if (graceMs === undefined || graceMs >= min) return;
  const { label, text } = find(sources, 'grace') as Given;
  throw new ConfigError(label, text, `at least ${min}ms (a thousandth of the duration, since clocks drift)`);
}

function checkNodeId(sources: SettingSources, { nodeId, nodes }: Settings): void {
  const given = find(sources, 'node-id');
  if (given === undefined || nodeId === undefined) return;
  const { label, text, flag } = given;
  const store = find(sources, 'store');
  // A flag is meant for this run and wins over a store that the environment names for every run.
  if (store && !(flag && !store.flag)) {
    const why = 'a fixed id is not leased from a store, and may be held there by another task';
    throw new ConfigError(label, text, `no ${store.label} beside it (${why})`);
  }
  if (nodes !== undefined && nodeId >= nodes) {
    const ids = `${find(sources, 'nodes')?.label} ${nodes} makes the ids 0 to ${nodes - 1}`;
    throw new ConfigError(label, text, `an id below ${nodes} (${ids})`);
  }
}

/** `--provider zookeeper` needs ZooKeeper, and nothing that is about leases in a store. */
function checkProvider(
  sources: SettingSources,
  { provider, zookeeper }: Settings,
  server: Given | undefined,
): void {
  const given = find(sources, 'provider');
  if (given === undefined || provider === 'store') return;
  const { label, text } = given;
  if (zookeeper === undefined)
    throw new ConfigError(label, text, '--zookeeper beside it, with the servers that give out the node ids');
  const useless =
    firstFlag(sources, ({ storeOnly }) => storeOnly === true) ?? (server?.flag ? server : undefined);
  if (useless)
    throw new ConfigError(
      useless.label,
      useless.text,
      `no ${label} zookeeper beside it (it is about leases in a store)`,
    );
  // One of the two would be taken without a word, and a fixed id may be the one that ZooKeeper gives to
  // another task.
  const fixed = find(sources, 'node-id');
  if (fixed)
    throw new ConfigError(
      fixed.label,
      fixed.text,
      `no ${label} zookeeper beside it (a fixed id is not given out by anybody)`,
    );
}

/**
 * The data directory, which a fixed node id has none of: without versions nothing tells the directory of a
 * stale holder from another's.
 */
function readDataDir(sources: SettingSources): DataDirSettings | undefined {
  const given = find(sources, 'data-dir');
  const root = read(sources, 'data-dir');
  if (given === undefined || root === undefined) {
    const useless = firstFlag(sources, ({ needs }) => needs === 'data-dir');
    if (useless) throw new ConfigError(useless.label, useless.text, '--data-dir ROOT beside it');
    return undefined;
  }
  const fixed = find(sources, 'node-id');
  if (fixed)
    throw new ConfigError(
      given.label,
      given.text,
      `no ${fixed.label} beside it (a fixed id has no versions)`,
    );
  const [retention, exclude] = [
    readOrDefault(sources, 'data-retention'),
    read(sources, 'data-exclude') ?? [],
  ];
  return { root, retention, exclude, copy: read(sources, 'data-copy') ?? false };
}

function staticNodeId({ text, label }: Given, hostname: string): number {
  const max = MAX_NODE_IDS - 1;
  if (text !== 'hostname') {
    if (!/^\d+$/.test(text))
      throw new ConfigError(label, text, `a whole number from 0 to ${max}, or "hostname"`);
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
