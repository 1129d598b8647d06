import { ConfigError } from '../../core/base/errors.js';
import { ordinalOf } from '../../core/lease/hold/static-lease.js';
import { CLUSTER_DEFAULTS } from '../../core/lease/model/cluster-config.js';
import { leastGraceMs, MAX_NODE_IDS } from '../../core/lease/model/lease-state.js';
import { type Given, GivenSettings, refuse, type SettingSources } from '../../core/settings/sources.js';
import { parseInteger } from '../../core/settings/values.js';
import type { StoreAccess } from '../../core/store/store-access.js';
import {
  type AllSettings,
  type PlainSettings,
  type ReadSettings,
  ROWS,
  readByProducts,
  readPlain,
  SETTINGS,
  type SettingValue,
} from './settings-table.js';
import { readStoreAccess } from './store-access.js';
import { readZooKeeper, type ZooKeeperSettings } from './zookeeper-settings.js';

export { environmentName, SETTINGS, type SettingName } from './settings-table.js';
export type { ZooKeeperSettings } from './zookeeper-settings.js';

/**
 * When a node id is retired: `stop`, the work is asked to end; `drain`, it continues until it ends by itself,
 * and gets no new work.
 */
export type RetirePolicy = SettingValue<'on-retire'>;

/** The settings of one invocation: checked, typed, durations in milliseconds. */
export interface Settings extends PlainSettings, ReadSettings, StoreAccess {
  /** The URL of the store of the leases, in its normal form. */
  readonly store: string;
  /** Where node ids come from. */
  readonly provider: SettingValue<'provider'>;
  readonly logLevel: SettingValue<'log-level'>;
  /** The fixed node id that takes the place of a leased one. */
  readonly nodeId?: number | undefined;
  /** Present when there is discovery. */
  readonly zookeeper?: ZooKeeperSettings | undefined;
}

/**
 * Reads all settings, and checks them and their relations. A flag wins over its environment variable.
 *
 * @throws {ConfigError} naming the setting as the user gave it, the value, and what was expected
 */
export function readSettings(sources: SettingSources): Settings {
  checkNoneEmpty(sources);
  const all: AllSettings = new GivenSettings(sources, ROWS);
  const store = all.readOrDefault('store');
  const nodeId = all.find('node-id');
  const settings: Settings = {
    ...readPlain(all),
    store,
    provider: all.readOrDefault('provider'),
    logLevel: all.readOrDefault('log-level'),
    nodeId: nodeId && staticNodeId(nodeId, sources.hostname),
    ...readStoreAccess(all, store),
    zookeeper: readZooKeeper(all),
    ...readByProducts(all),
  };
  checkGrace(all, settings);
  checkNodeId(all, settings);
  checkNeeds(all);
  checkProvider(all, settings);
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

/** Settings that are of no use alone. Other reads see to ZooKeeper and its TLS. */
function checkNeeds(all: AllSettings): void {
  for (const { name, wanted } of SETTINGS) {
    // Of a command that announces nothing, --service-base-path is another setting.
    if (wanted === undefined || (name === 'service' && all.sources.announces === false)) continue;
    const useless = all.firstFlag(({ needs }) => needs === name);
    if (useless && !all.find(name)) refuse(useless, wanted);
  }
}

function checkGrace(all: AllSettings, { durationMs = CLUSTER_DEFAULTS.durationMs, graceMs }: Settings): void {
  const min = leastGraceMs(durationMs);
  const given = all.find('grace');
  if (given && graceMs !== undefined && graceMs < min)
    refuse(given, `at least ${min}ms (a thousandth of the duration, since clocks drift)`);
}

function checkNodeId(all: AllSettings, { nodeId, nodes }: Settings): void {
  const given = all.find('node-id');
  if (given === undefined || nodeId === undefined) return;
  const store = all.find('store');
  // A flag is meant for this run and wins over a store that the environment names for every run.
  if (store && !(given.flag && !store.flag)) {
    const why = 'a fixed id is not leased from a store, and may be held there by another task';
    refuse(given, `no ${store.label} with it (${why})`);
  }
  if (nodes !== undefined && nodeId >= nodes) {
    const ids = `${all.find('nodes')?.label} ${nodes} makes the ids 0 to ${nodes - 1}`;
    refuse(given, `an id below ${nodes} (${ids})`);
  }
}

/** `--provider zookeeper` needs ZooKeeper, and nothing that is about leases in a store. */
function checkProvider(all: AllSettings, { provider, zookeeper }: Settings): void {
  const given = all.find('provider');
  if (given === undefined || provider === 'store') return;
  if (zookeeper === undefined)
    refuse(given, '--zookeeper with it, with the servers that give out the node ids');
  const useless = all.firstFlag(({ storeOnly }) => storeOnly === true);
  if (useless) refuse(useless, `no ${given.label} zookeeper with it (it is about leases in a store)`);
  // One of the two would be taken without a word, and a fixed id may be the one that ZooKeeper gives to
  // another task.
  const fixed = all.find('node-id');
  if (fixed) refuse(fixed, `no ${given.label} zookeeper with it (a fixed id is not given out by anybody)`);
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
