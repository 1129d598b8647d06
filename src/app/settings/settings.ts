import { nearest } from '../../core/base/arguments.js';
import { ConfigError } from '../../core/base/errors.js';
import { ordinalOf } from '../../core/lease/hold/static-lease.js';
import { CLUSTER_DEFAULTS } from '../../core/lease/model/cluster-config.js';
import { leastGraceMs, MAX_NODE_IDS } from '../../core/lease/model/lease-state.js';
import { parseInteger } from '../../core/settings/setting.js';
import {
  type Given,
  GivenSettings,
  isServiceLink,
  refuse,
  type SettingSources,
} from '../../core/settings/sources.js';
import type { OwnSettings } from '../../core/store/store-kind.js';
import { listed, STORES, type StoreAccess, storeKindOf } from '../../core/store/stores.js';
import { checkPrivate } from '../http/http-settings.js';
import {
  type AllSettings,
  environmentName,
  type PlainSettings,
  type ReadSettings,
  ROWS,
  readByProducts,
  readPlain,
  SETTINGS,
  type SettingName,
  type SettingValue,
} from './settings-table.js';
import { readTlsFiles, tlsFile } from './tls-files.js';
import { readZooKeeper, type ZooKeeperSettings } from './zookeeper-settings.js';

export { environmentName } from './settings-table.js';
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
  // What is no plain text is refused also where nothing reads it.
  for (const { name } of SETTINGS) all.find(name);
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
  if (settings.ecsProtect === 'busy') checkPrivate(all, '--ecs-protect busy', 'this task is busy');
  return settings;
}

/**
 * An empty variable is a slip, such as a reference to another one that is not set, and must not have the
 * default used without a word.
 */
function checkNoneEmpty({ env }: SettingSources) {
  const empty = Object.keys(env).find((name) => name.startsWith('NODELEASE_') && env[name] === '');
  if (empty !== undefined)
    throw new ConfigError(empty, '', 'a value (for the default, do not set the variable)');
}

/** Settings that are of no use alone. Other reads see to ZooKeeper and its TLS. */
function checkNeeds(all: AllSettings) {
  for (const { name, wanted } of SETTINGS) {
    // Of a command that announces nothing, --service-base-path is another setting.
    if (wanted === undefined || (name === 'service' && all.sources.announces === false)) continue;
    const useless = all.firstFlag(({ needs }) => needs === name);
    if (useless && !all.find(name)) refuse(useless, wanted);
  }
}

function checkGrace(all: AllSettings, { durationMs = CLUSTER_DEFAULTS.durationMs, graceMs }: Settings) {
  const given = all.find('grace');
  const wanted = wantedGrace(durationMs, graceMs);
  if (given && wanted) refuse(given, wanted);
}

/** What is expected of a grace that is too short for the duration; undefined for every other. */
export function wantedGrace(durationMs: number, graceMs = Number.POSITIVE_INFINITY): string | undefined {
  const min = leastGraceMs(durationMs);
  return graceMs < min ? `at least ${min}ms (a thousandth of the duration, since clocks drift)` : undefined;
}

function checkNodeId(all: AllSettings, { nodeId, nodes }: Settings) {
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
function checkProvider(all: AllSettings, { provider, zookeeper }: Settings) {
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

/**
 * How to reach the store. Settings of other stores are of no use: flags are refused, variables may be there
 * for other programs.
 *
 * @throws {ConfigError} naming the setting as the user gave it, and what was expected
 */
function readStoreAccess(all: AllSettings, url: string): StoreAccess {
  const { own, endpoint: takesEndpoint } = storeKindOf(url) ?? {};
  for (const { own: other, schemes } of STORES) {
    if (other === own) continue;
    const useless = all.firstFlag((_, name) => name in (other?.settings ?? {}));
    const expected = `a store of ${listed(schemes.map((scheme) => `${scheme}://`))} with it`;
    if (useless) refuse(useless, expected);
  }
  const server = all.find('endpoint');
  const endpoint = all.read('endpoint');
  if (server && takesEndpoint === undefined && (server.flag || !all.find('store')?.flag)) {
    const having = STORES.flatMap((kind) => (kind.endpoint ? [`${kind.schemes[0]}:`] : []));
    refuse(server, `no endpoint with the store ${url} (only ${listed(having, 'and')} have one)`);
  }
  return {
    endpoint: takesEndpoint && endpoint,
    region: all.read('region'),
    ...(own && { [own.option]: readOwn(all, own, url) }),
  };
}

/** The settings that the kind of store has alone, by the fields of its option. */
function readOwn(all: AllSettings, { option, settings, tlsScheme }: OwnSettings, url: string): object {
  const values = Object.entries(settings).map(([name, { option: field = '' }]) => [
    field.slice(option.length + 1),
    all.read(name as SettingName),
  ]);
  if (tlsScheme === undefined || url.startsWith(`${tlsScheme}:`))
    return { ...Object.fromEntries(values), ...(tlsScheme && readTlsFiles(all, option)) };
  const useless = tlsFile(all, option);
  if (useless) refuse(useless, `a store of ${tlsScheme}:// with it (nothing is encrypted without)`);
  return Object.fromEntries(values);
}

const PREFIX = 'NODELEASE_';
/** The last one is of `run` for its command. */
const KNOWN = [...SETTINGS.map(({ name }) => environmentName(name)), 'NODELEASE_URL'].map((name) =>
  name.slice(PREFIX.length),
);

/**
 * What is wrong with the variables that have the prefix of settings and are none: most likely misspelt, so
 * that a default is used.
 */
export function unknownVariables(env: Readonly<Record<string, string | undefined>>): string[] {
  return Object.entries(env).flatMap(([name, text]) => {
    if (name.startsWith(`\ufeff${PREFIX}`))
      return [`${name.slice(1)} has a byte order mark (U+FEFF) before its name, and no effect`];
    const rest = name.slice(PREFIX.length);
    const isOurs = name.startsWith(PREFIX) && text !== undefined && !isServiceLink(name, text);
    if (!isOurs || KNOWN.includes(rest)) return [];
    const near = nearest(rest, KNOWN);
    const hint = near === undefined ? '' : `: the nearest is ${PREFIX}${near}`;
    return [`${name} is no setting, and has no effect${hint}`];
  });
}
