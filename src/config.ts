import { readZooKeeper, type ZooKeeperSettings } from './config/discovery.js';
import { readEndpoints } from './config/endpoints.js';
import { find, type Given, type Read, type SettingName, type SettingSources } from './config/sources.js';
import { parseDuration, parseInteger } from './config/values.js';
import { ConfigError } from './errors.js';
import { type ListenAddress, parseListenAddress } from './http/listen-address.js';
import { DURATION_MS, leastGraceMs, MOST_GRACE_MS } from './lease/lease-state.js';
import { ordinalOf } from './lease/static-lease.js';
import { parseStoreUrl, type StoreUrl } from './store/store-url.js';

export { announcingProblem } from './config/announcing.js';
export type { ZooKeeperSettings } from './config/discovery.js';
export {
  ENDPOINTS_VARIABLE,
  environmentName,
  SETTINGS,
  type SettingName,
  type SettingSources,
  type SettingSpec,
} from './config/sources.js';

/** How much is logged. */
export type LogLevel = 'trace' | 'debug' | 'info' | 'warn' | 'error' | 'fatal' | 'silent';

/** How log lines look: `json`, one object a line; `pretty`, for people. */
export type LogFormat = 'json' | 'pretty';

/** The settings of one invocation: checked, typed, durations in milliseconds. */
export interface Settings {
  /** @default file:.nodelease */
  readonly store: StoreUrl;
  /** The fixed node id that takes the place of a leased one. */
  readonly nodeId?: number;
  /** How many node ids a cluster that is created has, 1 to 65528. */
  readonly nodes?: number;
  /** How long a lease lasts without renewal, 1,000 to 86,400,000. */
  readonly durationMs?: number;
  /** How much longer a contender waits, a thousandth of the duration to 3,600,000. */
  readonly graceMs?: number;
  /** 1 to 128 printable ASCII characters without spaces. */
  readonly taskId?: string;
  /** How long to wait for a free node id; without limit when it is absent. */
  readonly acquireTimeoutMs?: number;
  /** How often a task that waits for a node id looks at a store that tells of no changes, 100 to 86,400,000. */
  readonly waitPollMs?: number;
  /** How often a holder reads the cluster's settings beside its renewals, 1 to 3,600,000; beside each of them when it is absent. */
  readonly settingsIntervalMs?: number;
  /** What becomes of the work when the node id is retired; what suits the command when it is absent. */
  readonly onRetire?: RetirePolicy;
  /** The server of an S3-compatible store. */
  readonly endpoint?: string;
  readonly region?: string;
  /** @default store */
  readonly provider: NodeIdProvider;
  /** Present when there is discovery. */
  readonly zookeeper?: ZooKeeperSettings;
  /** Where to listen for HTTP requests; port 0 for any that is free. */
  readonly http?: ListenAddress;
  /** The file with the token that whoever asks over HTTP for more than health must send. */
  readonly bearerTokenFile?: string;
  /** @default info */
  readonly logLevel: LogLevel;
  /** Absent for what suits standard error: pretty on a terminal, else json. */
  readonly logFormat?: LogFormat;
}

/**
 * What becomes of the work when its node id is retired: `stop`, it is asked to end; `drain`, it goes on until it ends by itself, and gets no new
 * work.
 */
export type RetirePolicy = 'drain' | 'stop';

/** Where node ids come from. */
export type NodeIdProvider = 'store' | 'zookeeper';

/** How long a lease lasts where nobody says otherwise, in milliseconds. */
export const DEFAULT_DURATION_MS = 15_000;

const MAX_NODES = 65_528;
const LOG_LEVELS: readonly string[] = ['trace', 'debug', 'info', 'warn', 'error', 'fatal', 'silent'] satisfies LogLevel[];

/**
 * Checks all settings and their relations, in this one place. A flag wins over its environment variable.
 *
 * @throws {ConfigError} naming the setting as the user gave it, the value, and what was expected
 */
export function readSettings(sources: SettingSources): Settings {
  const read: Read = (name, parse) => {
    const given = find(sources, name);
    return given && parse(given.text, given.label);
  };
  const store = read('store', parseStoreUrl) ?? parseStoreUrl('file:.nodelease');
  const nodes = read('nodes', (text, label) => parseInteger(text, label, 1, MAX_NODES));
  const nodeId = read('node-id', (text, label) => staticNodeId(text, label, sources.hostname));
  const durationMs = read('duration', (text, label) =>
    parseDuration(text, label, {
      least: [DURATION_MS.least, 'at least 1s (a shorter lease leaves no time to renew it over a network)'],
      most: [DURATION_MS.most, 'at most 24h (that long a dead node keeps its id from the others)'],
    }),
  );
  const graceMs = read('grace', (text, label) => parseDuration(text, label, { most: [MOST_GRACE_MS, 'at most 1h'] }));
  const acquireTimeoutMs = read('acquire-timeout', (text, label) =>
    parseDuration(text, label, { most: [31_536_000_000, 'at most 8760h'] }),
  );
  const waitPollMs = read('wait-poll', (text, label) =>
    parseDuration(text, label, {
      least: [100, 'at least 100ms (each look is a request)'],
      most: [86_400_000, 'at most 24h'],
    }),
  );
  const settingsIntervalMs = read('settings-interval', (text, label) =>
    parseDuration(text, label, {
      least: [1, 'more than 0s (leave it out to look beside each renewal)'],
      most: [3_600_000, 'at most 1h (so long a holder would not know that its node id is to go)'],
    }),
  );
  const onRetire = read('on-retire', checkRetirePolicy);
  const taskId = read('task-id', checkTaskId);
  const region = read('region', checkRegion);
  const logLevel = read('log-level', checkLogLevel) ?? 'info';
  const provider = read('provider', checkProvider) ?? 'store';
  const http = read('http', parseListenAddress);
  const bearerTokenFile = read('bearer-token-file', checkPath);
  const logFormat = read('log-format', checkLogFormat);
  const { url: endpointGiven, names } = readEndpoints(sources);
  const zookeeper = readZooKeeper(sources, read, names);

  const graceGiven = find(sources, 'grace');
  const least = leastGraceMs(durationMs ?? DEFAULT_DURATION_MS);
  if (graceGiven && graceMs !== undefined && graceMs < least) {
    throw new ConfigError(graceGiven.label, graceGiven.text, `at least ${least}ms (a thousandth of the duration, since clocks drift)`);
  }
  const nodeIdGiven = find(sources, 'node-id');
  const storeGiven = find(sources, 'store');
  // A flag is meant for this run and wins over a store that the surroundings name for every run.
  if (nodeIdGiven && storeGiven && !(nodeIdGiven.flag && !storeGiven.flag)) {
    throw new ConfigError(
      nodeIdGiven.label,
      nodeIdGiven.text,
      `no ${storeGiven.label} beside it (a fixed id is not leased from a store, and may be held there by another task)`,
    );
  }
  if (nodeIdGiven && nodeId !== undefined && nodes !== undefined && nodeId >= nodes) {
    throw new ConfigError(
      nodeIdGiven.label,
      nodeIdGiven.text,
      `an id below ${nodes} (${find(sources, 'nodes')?.label} ${nodes} makes the ids 0 to ${nodes - 1})`,
    );
  }
  const endpointOfNoUse = endpointGiven !== undefined && store.kind !== 's3';
  if (endpointOfNoUse && (endpointGiven.flag || !storeGiven?.flag)) {
    throw new ConfigError(endpointGiven.label, endpointGiven.text, `no endpoint with the store ${store.url} (only s3: has one)`);
  }

  checkProviderBeside(sources, provider, zookeeper !== undefined, endpointGiven);

  return {
    store,
    logLevel,
    provider,
    ...(zookeeper !== undefined && { zookeeper }),
    ...(nodeId !== undefined && { nodeId }),
    ...(nodes !== undefined && { nodes }),
    ...(durationMs !== undefined && { durationMs }),
    ...(graceMs !== undefined && { graceMs }),
    ...(taskId !== undefined && { taskId }),
    ...(acquireTimeoutMs !== undefined && { acquireTimeoutMs }),
    ...(waitPollMs !== undefined && { waitPollMs }),
    ...(settingsIntervalMs !== undefined && { settingsIntervalMs }),
    ...(onRetire !== undefined && { onRetire }),
    ...(endpointGiven !== undefined && !endpointOfNoUse && { endpoint: endpointGiven.text }),
    ...(region !== undefined && { region }),
    ...(http !== undefined && { http }),
    ...(bearerTokenFile !== undefined && { bearerTokenFile }),
    ...(logFormat !== undefined && { logFormat }),
  };
}

/** `--provider zookeeper` needs ZooKeeper, and nothing that is about leases in a store. */
function checkProviderBeside(sources: SettingSources, provider: NodeIdProvider, hasZooKeeper: boolean, server: Given | undefined): void {
  const given = find(sources, 'provider');
  if (given === undefined || provider === 'store') return;
  if (!hasZooKeeper) throw new ConfigError(given.label, given.text, '--zookeeper beside it, with the servers that give out the node ids');
  const useless = [...STORE_ONLY.map((name) => find(sources, name)), server].find((other) => other?.flag);
  if (useless) throw new ConfigError(useless.label, useless.text, `no ${given.label} zookeeper beside it (it is about leases in a store)`);
  // One of the two would be taken without a word, and a fixed id may be the one that ZooKeeper gives to another task.
  const fixed = find(sources, 'node-id');
  if (fixed)
    throw new ConfigError(fixed.label, fixed.text, `no ${given.label} zookeeper beside it (a fixed id is not given out by anybody)`);
}

/** What only leases in a store have. */
const STORE_ONLY: readonly SettingName[] = [
  'store',
  'nodes',
  'duration',
  'grace',
  'wait-poll',
  'settings-interval',
  'on-retire',
  'node-id',
  'region',
  'ready-timeout',
];

function staticNodeId(text: string, label: string, hostname: string): number {
  if (text !== 'hostname') {
    if (!/^\d+$/.test(text)) throw new ConfigError(label, text, `a whole number from 0 to ${MAX_NODES - 1}, or "hostname"`);
    return parseInteger(text, label, 0, MAX_NODES - 1);
  }
  try {
    return parseInteger(String(ordinalOf(hostname)), label, 0, MAX_NODES - 1);
  } catch (cause) {
    if (!(cause instanceof ConfigError)) throw cause;
    throw new ConfigError(`${label} hostname`, hostname, `a host name that ends in an ordinal from 0 to ${MAX_NODES - 1}, such as web-3`);
  }
}

function checkTaskId(text: string, label: string): string {
  if (!/^[\x21-\x7e]{1,128}$/.test(text)) throw new ConfigError(label, text, '1 to 128 printable ASCII characters without spaces');
  return text;
}

function checkRegion(text: string, label: string): string {
  if (!/^[a-z0-9-]{1,64}$/.test(text)) throw new ConfigError(label, text, 'the name of a region such as eu-central-1');
  return text;
}

function checkProvider(text: string, label: string): NodeIdProvider {
  if (text !== 'store' && text !== 'zookeeper') throw new ConfigError(label, text, 'store or zookeeper');
  return text;
}

function checkRetirePolicy(text: string, label: string): RetirePolicy {
  if (text !== 'drain' && text !== 'stop') throw new ConfigError(label, text, 'drain or stop');
  return text;
}

function checkLogLevel(text: string, label: string): LogLevel {
  if (!LOG_LEVELS.includes(text)) throw new ConfigError(label, text, `one of ${LOG_LEVELS.join(', ')}`);
  return text as LogLevel;
}

function checkLogFormat(text: string, label: string): LogFormat {
  if (text !== 'json' && text !== 'pretty') throw new ConfigError(label, text, 'json or pretty');
  return text;
}

function checkPath(text: string, label: string): string {
  if (text === '' || text.includes('\0')) throw new ConfigError(label, text, 'the path of a file');
  return text;
}
