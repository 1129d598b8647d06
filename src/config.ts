import { ConfigError } from './errors.js';
import { leastGraceMs } from './lease/lease-state.js';
import { ordinalOf } from './lease/static-lease.js';
import { parseStoreUrl, type StoreUrl } from './store/store-url.js';
import { parseAuth } from './zookeeper/access.js';
import { type ConnectString, parseConnectString } from './zookeeper/connect-string.js';
import { checkZnodeName } from './zookeeper/znode-path.js';

/** One setting of the command line: the flag `--<name>`, and the environment variable of the same name. */
export interface SettingSpec {
  /** Without the leading dashes: `task-id` is `--task-id` and `NODELEASE_TASK_ID`. */
  readonly name: SettingName;
  /** What the value is, for the help: `url`, `duration`; absent for a switch, which is on or off. */
  readonly argument?: string;
  /** One line for the help. */
  readonly description: string;
}

/** The settings, by their names on the command line. */
export type SettingName =
  | 'store'
  | 'nodes'
  | 'duration'
  | 'grace'
  | 'task-id'
  | 'acquire-timeout'
  | 'node-id'
  | 'endpoint'
  | 'region'
  | 'provider'
  | 'zookeeper'
  | 'zookeeper-auth'
  | 'zookeeper-session-timeout'
  | 'zookeeper-required'
  | 'service'
  | 'address'
  | 'port'
  | 'ready-timeout'
  | 'log-level';

/** Every setting, in the order of the help. */
export const SETTINGS: readonly SettingSpec[] = [
  { name: 'store', argument: 'url', description: 's3://bucket/prefix, file:DIR or memory: (default: file:.nodelease)' },
  { name: 'nodes', argument: 'n', description: 'how many node ids a new cluster has, 1 to 65528 (default: 16)' },
  { name: 'duration', argument: 'time', description: 'how long a lease of a new cluster lasts without renewal, 1s to 24h (default: 15s)' },
  { name: 'grace', argument: 'time', description: 'how much longer others wait before they take an expired lease, up to 1h (default: 1s)' },
  { name: 'task-id', argument: 'id', description: 'names this run (default: the id of the ECS task, else host name and a random part)' },
  {
    name: 'acquire-timeout',
    argument: 'time',
    description: 'how long to wait for a free node id, 0s for not at all (default: without limit)',
  },
  {
    name: 'node-id',
    argument: 'id',
    description: 'a fixed node id instead of a leased one: a number, or "hostname" for the ordinal at the end of the host name',
  },
  { name: 'endpoint', argument: 'url', description: 'the server of an S3-compatible store (default: AWS)' },
  { name: 'region', argument: 'name', description: 'the region of the S3 bucket (default: what the AWS environment says)' },
  {
    name: 'provider',
    argument: 'name',
    description: 'where node ids come from: store, or zookeeper for ids that last as long as a ZooKeeper session (default: store)',
  },
  { name: 'zookeeper', argument: 'servers', description: 'ZooKeeper servers and chroot: HOST:PORT[,HOST:PORT]...[/CHROOT]' },
  { name: 'zookeeper-auth', argument: 'digest', description: 'credentials for ZooKeeper: digest:USER:PASSWORD (default: none)' },
  {
    name: 'zookeeper-session-timeout',
    argument: 'time',
    description: 'how long a ZooKeeper session outlives its connection, 1s to 10m (default: 10s)',
  },
  { name: 'zookeeper-required', description: 'fail at the start when ZooKeeper cannot be reached, instead of working without it' },
  { name: 'service', argument: 'name', description: 'the service to announce this node under' },
  { name: 'address', argument: 'host', description: 'the address to announce' },
  { name: 'port', argument: 'n', description: 'the port to announce, 1 to 65535' },
  {
    name: 'ready-timeout',
    argument: 'time',
    description: 'how long to wait, after taking over an expired lease, until all other nodes know of it (default: 60s)',
  },
  { name: 'log-level', argument: 'level', description: 'trace, debug, info, warn, error, fatal or silent (default: info)' },
];

/** How much is logged. */
export type LogLevel = 'trace' | 'debug' | 'info' | 'warn' | 'error' | 'fatal' | 'silent';

/** What the settings are read from: plain text, as it came from outside. */
export interface SettingSources {
  /** The flags that were given, by {@link SettingName}. */
  readonly flags: Readonly<Record<string, string | undefined>>;
  /** The environment. An empty variable counts as not set. */
  readonly env: Readonly<Record<string, string | undefined>>;
  /** The name of this host, for `--node-id hostname`. */
  readonly hostname: string;
}

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
  readonly endpoint?: string;
  readonly region?: string;
  /** @default store */
  readonly provider: NodeIdProvider;
  /** Present when there is discovery. */
  readonly zookeeper?: ZooKeeperSettings;
  /** @default info */
  readonly logLevel: LogLevel;
}

/** Where node ids come from. */
export type NodeIdProvider = 'store' | 'zookeeper';

/** How to reach ZooKeeper, and what to announce there. */
export interface ZooKeeperSettings {
  readonly connect: ConnectString;
  /** `digest:user:password`. */
  readonly auth?: string;
  /** How long a session outlives its connection, 1,000 to 600,000. The servers may grant another. @default 10000 */
  readonly sessionTimeoutMs: number;
  /** Fails the start when ZooKeeper cannot be reached. */
  readonly required: boolean;
  /** A znode's name. */
  readonly service?: string;
  readonly address?: string;
  readonly port?: number;
  /** How long a node that took over an expired lease waits until the others know of it. @default 60000 */
  readonly readyTimeoutMs: number;
}

/** How long a lease lasts where nobody says otherwise, in milliseconds. */
export const DEFAULT_DURATION_MS = 15_000;

/** The name of the environment variable of a setting. */
export function environmentName(name: SettingName): string {
  return `NODELEASE_${name.toUpperCase().replaceAll('-', '_')}`;
}

const MAX_NODES = 65_528;
const LOG_LEVELS: readonly string[] = ['trace', 'debug', 'info', 'warn', 'error', 'fatal', 'silent'] satisfies LogLevel[];

/**
 * Checks all settings and their relations, in this one place. A flag wins over its environment variable.
 *
 * @throws {ConfigError} naming the setting as the user gave it, the value, and what was expected
 */
export function readSettings(sources: SettingSources): Settings {
  const read = <T>(name: SettingName, parse: (text: string, label: string) => T): T | undefined => {
    const given = find(sources, name);
    return given && parse(given.text, given.label);
  };
  const store = read('store', parseStoreUrl) ?? parseStoreUrl('file:.nodelease');
  const nodes = read('nodes', (text, label) => integer(text, label, 1, MAX_NODES));
  const nodeId = read('node-id', (text, label) => staticNodeId(text, label, sources.hostname));
  const durationMs = read('duration', (text, label) =>
    duration(text, label, {
      least: [1_000, 'at least 1s (a shorter lease leaves no time to renew it over a network)'],
      most: [86_400_000, 'at most 24h (that long a dead node keeps its id from the others)'],
    }),
  );
  const graceMs = read('grace', (text, label) => duration(text, label, { most: [3_600_000, 'at most 1h'] }));
  const acquireTimeoutMs = read('acquire-timeout', (text, label) => duration(text, label, { most: [31_536_000_000, 'at most 8760h'] }));
  const taskId = read('task-id', checkTaskId);
  const endpoint = read('endpoint', checkEndpoint);
  const region = read('region', checkRegion);
  const logLevel = read('log-level', checkLogLevel) ?? 'info';
  const provider = read('provider', checkProvider) ?? 'store';
  const zookeeper = readZooKeeper(sources, read);

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
  const endpointGiven = find(sources, 'endpoint');
  const endpointOfNoUse = endpointGiven !== undefined && store.kind !== 's3';
  if (endpointOfNoUse && (endpointGiven.flag || !storeGiven?.flag)) {
    throw new ConfigError(endpointGiven.label, endpointGiven.text, `no endpoint with the store ${store.url} (only s3: has one)`);
  }

  checkProviderBeside(sources, provider, zookeeper !== undefined);

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
    ...(endpoint !== undefined && !endpointOfNoUse && { endpoint }),
    ...(region !== undefined && { region }),
  };
}

/** Reads one setting, where it is given. */
type Read = <T>(name: SettingName, parse: (text: string, label: string) => T) => T | undefined;

/** What is of no use without `zookeeper`. */
const DISCOVERY_SETTINGS: readonly SettingName[] = [
  'zookeeper-auth',
  'zookeeper-session-timeout',
  'zookeeper-required',
  'service',
  'address',
  'port',
  'ready-timeout',
];

function readZooKeeper(sources: SettingSources, read: Read): ZooKeeperSettings | undefined {
  const connect = read('zookeeper', (text, label) => {
    if (/^digest:/i.test(text))
      throw new ConfigError(label, 'digest:…', 'servers, HOST:PORT[,HOST:PORT]...[/CHROOT] (credentials go to --zookeeper-auth)');
    return parseConnectString(text, label);
  });
  if (connect === undefined) {
    // Variables may be there for other programs of the same surroundings; a flag is meant for this one.
    const useless = DISCOVERY_SETTINGS.map((name) => find(sources, name)).find((given) => given?.flag);
    if (useless) throw new ConfigError(useless.label, secretive(useless), '--zookeeper beside it (it is of use with discovery only)');
    return undefined;
  }
  const auth = read('zookeeper-auth', (text, label) => {
    parseAuth(text, label);
    return text;
  });
  const sessionTimeoutMs = read('zookeeper-session-timeout', (text, label) =>
    duration(text, label, {
      least: [1_000, 'at least 1s (a session must outlive a short break of the connection)'],
      most: [600_000, 'at most 10m (that long a dead node stays in the tree)'],
    }),
  );
  const required = read('zookeeper-required', onOrOff) ?? false;
  const service = read('service', (text, label) => {
    checkZnodeName(text, label);
    return text;
  });
  const address = read('address', checkAddress);
  const port = read('port', (text, label) => integer(text, label, 1, 65_535));
  const readyTimeoutMs = read('ready-timeout', (text, label) => duration(text, label, { most: [86_400_000, 'at most 24h'] }));
  return {
    connect,
    required,
    sessionTimeoutMs: sessionTimeoutMs ?? 10_000,
    readyTimeoutMs: readyTimeoutMs ?? 60_000,
    ...(auth !== undefined && { auth }),
    ...(service !== undefined && { service }),
    ...(address !== undefined && { address }),
    ...(port !== undefined && { port }),
  };
}

/** A password does not belong into a log. */
function secretive({ label, text }: Given): string {
  return label === '--zookeeper-auth' ? 'digest:…' : text;
}

/** `--provider zookeeper` needs ZooKeeper, and nothing that is about leases in a store. */
function checkProviderBeside(sources: SettingSources, provider: NodeIdProvider, hasZooKeeper: boolean): void {
  const given = find(sources, 'provider');
  if (given === undefined || provider === 'store') return;
  if (!hasZooKeeper) throw new ConfigError(given.label, given.text, '--zookeeper beside it, with the servers that give out the node ids');
  const useless = STORE_ONLY.map((name) => find(sources, name)).find((other) => other?.flag);
  if (useless) throw new ConfigError(useless.label, useless.text, `no ${given.label} zookeeper beside it (it is about leases in a store)`);
  // One of the two would be taken without a word, and a fixed id may be the one that ZooKeeper gives to another task.
  const fixed = find(sources, 'node-id');
  if (fixed)
    throw new ConfigError(fixed.label, fixed.text, `no ${given.label} zookeeper beside it (a fixed id is not given out by anybody)`);
}

/** What only leases in a store have. */
const STORE_ONLY: readonly SettingName[] = ['store', 'nodes', 'duration', 'grace', 'node-id', 'endpoint', 'region', 'ready-timeout'];

/** A value, and the name under which its user knows it. */
interface Given {
  readonly label: string;
  readonly text: string;
  /** From the command line rather than from the environment. */
  readonly flag: boolean;
}

function find({ flags, env }: SettingSources, name: SettingName): Given | undefined {
  const flag = flags[name];
  if (flag !== undefined) return { label: `--${name}`, text: flag, flag: true };
  // A command that was itself started by `nodelease run` inherits the id of that run, which must not name a second one.
  if (name === 'task-id' && env.NODE_ID_VERSION) return undefined;
  const label = environmentName(name);
  const text = env[label];
  return text ? { label, text, flag: false } : undefined;
}

function integer(text: string, label: string, least: number, most: number): number {
  const value = /^\d{1,15}$/.test(text) ? Number(text) : Number.NaN;
  if (!(value >= least && value <= most)) throw new ConfigError(label, text, `a whole number from ${least} to ${most}`);
  return value;
}

const UNITS: Readonly<Record<string, number>> = { ms: 1, s: 1_000, m: 60_000, h: 3_600_000 };

/** A bound in milliseconds, and the words for it. */
type Bound = readonly [ms: number, words: string];

function duration(text: string, label: string, bounds: { readonly least?: Bound; readonly most: Bound }): number {
  const [, digits, unit = ''] = /^(\d{1,12})(ms|s|m|h)$/.exec(text) ?? [];
  const factor = UNITS[unit];
  if (digits === undefined || factor === undefined) throw new ConfigError(label, text, 'a time such as 500ms, 15s, 2m or 1h');
  const ms = Number(digits) * factor;
  const { least, most } = bounds;
  if (least && ms < least[0]) throw new ConfigError(label, text, least[1]);
  if (ms > most[0]) throw new ConfigError(label, text, most[1]);
  return ms;
}

function staticNodeId(text: string, label: string, hostname: string): number {
  if (text !== 'hostname') {
    if (!/^\d+$/.test(text)) throw new ConfigError(label, text, `a whole number from 0 to ${MAX_NODES - 1}, or "hostname"`);
    return integer(text, label, 0, MAX_NODES - 1);
  }
  try {
    return integer(String(ordinalOf(hostname)), label, 0, MAX_NODES - 1);
  } catch (cause) {
    if (!(cause instanceof ConfigError)) throw cause;
    throw new ConfigError(`${label} hostname`, hostname, `a host name that ends in an ordinal from 0 to ${MAX_NODES - 1}, such as web-3`);
  }
}

function checkTaskId(text: string, label: string): string {
  if (!/^[\x21-\x7e]{1,128}$/.test(text)) throw new ConfigError(label, text, '1 to 128 printable ASCII characters without spaces');
  return text;
}

function checkEndpoint(text: string, label: string): string {
  const protocol = URL.canParse(text) ? new URL(text).protocol : undefined;
  if (protocol !== 'http:' && protocol !== 'https:')
    throw new ConfigError(label, text, 'an http or https URL such as http://127.0.0.1:9000');
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

function onOrOff(text: string, label: string): boolean {
  if (text !== 'true' && text !== 'false') throw new ConfigError(label, text, 'true or false');
  return text === 'true';
}

function checkAddress(text: string, label: string): string {
  if (!/^[A-Za-z0-9._:%-]{1,255}$/.test(text)) throw new ConfigError(label, text, 'a host name or an IP address, without a port');
  return text;
}

function checkLogLevel(text: string, label: string): LogLevel {
  if (!LOG_LEVELS.includes(text)) throw new ConfigError(label, text, `one of ${LOG_LEVELS.join(', ')}`);
  return text as LogLevel;
}
