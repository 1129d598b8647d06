import { ConfigError } from '../base/errors.js';
import { DURATION_MS, MAX_NODE_IDS, MOST_GRACE_MS } from '../lease/model/lease-state.js';
import { checkBasePath, DEFAULT_BASE_PATH } from '../services/service-path.js';
import { parseUriSpec } from '../services/uri-spec.js';
import { parseEtcdAuth } from '../store/etcd/etcd-access.js';
import { parseStoreUrl, STORES } from '../store/store-url.js';
import { type ConnectString, parseAuth, parseConnectString } from '../zookeeper/connect-string.js';
import { checkZnodeName, parsePaths } from '../zookeeper/znode-path.js';
import { type ListenAddress, parseListenAddress } from './listen-address.js';
import { checked, choice, duration, integer, onOff, parsed, parseInteger, type SettingKind, text } from './values.js';

/** One setting: an option of commands, the environment variable of the same name, and often an option of the library. */
export interface Setting {
  readonly kind: SettingKind<unknown>;
  /** Whether the flag may be given several times. */
  readonly repeatable?: true;
  /** What holds where the setting is not given. A value as a user would write it; or, where that depends on other things, words for people. */
  readonly default?: string;
  /** The commands that have it. */
  readonly commands: readonly string[];
  /** The option of `acquire()` with the same meaning. Durations are in milliseconds there. */
  readonly option?: string;
  /** The setting without which it is of no use. Those of the others need `zookeeper` with them. */
  readonly needs?: 'zookeeper' | 'zookeeper-tls' | 'service' | 'check' | 'config';
  /** Whether it is about leases in a store, and of no use where node ids come from ZooKeeper. */
  readonly storeOnly?: true;
  /** What it means, without its range and default. */
  readonly sentence: string;
}

const HOLDING = ['run', 'serve'];
const CREATING = [...HOLDING, 'id', 'init'];
const CONSOLE = [...HOLDING, 'console'];
const NODE_IDS = [...CREATING, 'status', 'scale', 'release', 'doctor', 'console'];
const SERVICES = ['discovery services', 'discovery resolve', 'discovery serve'];
/** What is about leases, and so about locks on a store. */
const LEASES = [...NODE_IDS, 'lock'];
/** What runs a command while something in ZooKeeper is held. */
const ZK_HOLDING = ['zk lock', 'zk elect', 'zk rwlock', 'zk semaphore'];
const BARRIERS = ['zk barrier set', 'zk barrier wait', 'zk barrier remove'];
const RECIPES = [...ZK_HOLDING, ...BARRIERS, 'zk counter', 'zk queue put', 'zk queue take'];
const CONFIG = ['ls', 'get', 'set', 'unset', 'import', 'export', 'history', 'diff', 'rollback', 'watch', 'status'].map(
  (name) => `config ${name}`,
);
const DATA = ['data ls', 'data get', 'data set', 'data put', 'data add', 'data rm', 'data watch'];
const WITH_ZOOKEEPER = [...NODE_IDS, 'discovery ls', 'discovery watch', ...SERVICES, ...RECIPES, ...CONFIG, ...DATA];
const ALL = [...WITH_ZOOKEEPER, 'lock'];

const ANNOUNCED = { commands: HOLDING, needs: 'zookeeper' } as const;
const OF_TLS = { commands: WITH_ZOOKEEPER, needs: 'zookeeper-tls', kind: checked('path', checkPath) } as const;
const OF_ETCDS = { commands: LEASES, storeOnly: true, kind: checked('path', checkPath) } as const;
const OF_SERVICE = { commands: HOLDING, needs: 'service' } as const;
const OF_CHECK = { commands: HOLDING, needs: 'check' } as const;
const OF_CONFIG = { commands: ['run'], needs: 'config' } as const;

/** Every setting, in the order of the help. */
const ROWS = {
  store: {
    kind: parsed('url', parseStoreUrl),
    default: 'file:.nodelease',
    commands: LEASES,
    option: 'store',
    storeOnly: true,
    sentence: `${STORES}, which is private to one process and for trials`,
  },
  nodes: {
    kind: integer(1, MAX_NODE_IDS),
    default: '16',
    commands: [...CREATING, 'doctor'],
    option: 'nodes',
    storeOnly: true,
    sentence: 'how many node ids a new cluster has',
  },
  duration: {
    kind: duration({
      min: DURATION_MS.least,
      minWhy: 'a shorter lease leaves no time to renew it over a network',
      max: DURATION_MS.most,
      maxWhy: 'that long a dead node keeps its id from the others',
    }),
    default: '15s',
    commands: [...CREATING, 'doctor', 'lock'],
    option: 'durationMs',
    storeOnly: true,
    sentence: 'how long a lease of a new cluster lasts without renewal',
  },
  grace: {
    kind: duration({ max: MOST_GRACE_MS }),
    default: '1s, and at least a thousandth of the duration',
    commands: [...CREATING, 'lock'],
    option: 'graceMs',
    storeOnly: true,
    sentence: 'how much longer others wait before they take an expired lease',
  },
  'task-id': {
    kind: text('id', /^[\x21-\x7e]{1,128}$/, '1 to 128 printable ASCII characters without spaces'),
    default: 'the id of the ECS task, else host name and a random part',
    commands: [...HOLDING, 'id', 'lock', ...ZK_HOLDING],
    option: 'taskId',
    sentence: 'names this run: 1 to 128 printable ASCII characters without spaces',
  },
  'acquire-timeout': {
    kind: duration({ max: 31_536_000_000, open: true }),
    default: 'without limit',
    commands: [...HOLDING, 'id'],
    option: 'acquireTimeoutMs',
    sentence: 'how long to wait for a free node id, 0s for not at all',
  },
  'wait-poll': {
    kind: duration({ min: 100, minWhy: 'each look is a request', max: 86_400_000 }),
    default: '1.2s',
    commands: [...HOLDING, 'id', 'lock'],
    option: 'waitPollMs',
    storeOnly: true,
    sentence:
      'first pause between two listings of a store that tells of no changes while no node id is free; it grows to a third of the duration',
  },
  'settings-interval': {
    kind: duration({
      min: 1,
      minWhy: 'leave it out to look beside each renewal',
      max: 3_600_000,
      maxWhy: 'so long a holder would not know that its node id is to go',
    }),
    default: 'at each renewal',
    commands: [...HOLDING, 'id', 'doctor'],
    option: 'settingsIntervalMs',
    storeOnly: true,
    sentence: 'how often a holder looks beside its renewals whether the cluster has grown or shrunk',
  },
  'on-retire': {
    kind: choice('drain', 'stop'),
    default: 'stop; for serve drain',
    commands: HOLDING,
    storeOnly: true,
    sentence:
      'what happens when "nodelease scale" takes the node id out of use: stop tells the command to stop, drain lets it end by itself, without new work',
  },
  'node-id': {
    kind: checked('id', () => undefined),
    commands: HOLDING,
    storeOnly: true,
    sentence: 'a fixed node id instead of a leased one: a number, or "hostname" for the ordinal at the end of the host name',
  },
  endpoint: {
    kind: checked('url|name[:key]', () => undefined),
    repeatable: true,
    default: 'the cloud of the store',
    commands: LEASES,
    option: 'endpoint',
    sentence:
      'the server of an S3-compatible store, another cloud of Azure or an emulator, http(s)://HOST:PORT; for run and serve also, without ://, an endpoint to announce, NAME or NAME:KEY, any number of times (comma-separated in NODELEASE_ENDPOINTS)',
  },
  region: {
    kind: text('name', /^[a-z0-9-]{1,64}$/, 'the name of a region such as eu-central-1'),
    default: 'what the AWS environment says',
    commands: LEASES,
    option: 'region',
    storeOnly: true,
    sentence: 'the region of the S3 bucket',
  },
  'etcd-auth': {
    kind: checked('user', parseEtcdAuth),
    default: 'none',
    commands: LEASES,
    option: 'etcd.auth',
    storeOnly: true,
    sentence: 'a user of the etcd cluster: USER:PASSWORD',
  },
  'etcd-ca': { ...OF_ETCDS, option: 'etcd.ca', sentence: 'the PEM file of the CAs of the etcd servers, else those that Node trusts' },
  'etcd-cert': { ...OF_ETCDS, option: 'etcd.cert', sentence: 'the PEM file of the client certificate for etcd' },
  'etcd-key': { ...OF_ETCDS, option: 'etcd.key', sentence: 'the PEM file of its private key, without a passphrase' },
  provider: {
    kind: choice('store', 'zookeeper'),
    default: 'store',
    commands: NODE_IDS,
    option: 'provider',
    sentence: 'where node ids come from; those of ZooKeeper last as long as a session with it',
  },
  zookeeper: {
    kind: parsed('servers', parseServers),
    commands: WITH_ZOOKEEPER,
    option: 'zookeeper.connect',
    sentence: 'ZooKeeper servers and chroot: HOST:PORT[,HOST:PORT]...[/CHROOT]',
  },
  'zookeeper-auth': {
    kind: checked('digest', parseAuth),
    default: 'none',
    commands: WITH_ZOOKEEPER,
    option: 'zookeeper.auth',
    needs: 'zookeeper',
    sentence: 'credentials for ZooKeeper: digest:USER:PASSWORD',
  },
  'zookeeper-tls': {
    kind: onOff,
    commands: WITH_ZOOKEEPER,
    option: 'zookeeper.tls',
    needs: 'zookeeper',
    sentence: 'connect to ZooKeeper with TLS; without it the four settings that follow are errors',
  },
  'zookeeper-ca': {
    ...OF_TLS,
    option: 'zookeeper.tls.ca',
    sentence: 'the PEM file of the CAs of the ZooKeeper servers, else those that Node trusts',
  },
  'zookeeper-cert': { ...OF_TLS, option: 'zookeeper.tls.cert', sentence: 'the PEM file of the client certificate for ZooKeeper' },
  'zookeeper-key': { ...OF_TLS, option: 'zookeeper.tls.key', sentence: 'the PEM file of its private key, without a passphrase' },
  'zookeeper-servername': {
    ...OF_TLS,
    kind: text('host', /^[\w.:-]{1,253}$/, 'a host name or an IP address'),
    option: 'zookeeper.tls.servername',
    sentence: 'the name in the certificates of all ZooKeeper servers, else the host of each',
  },
  'zookeeper-session-timeout': {
    kind: duration({
      min: 1_000,
      minWhy: 'a session must outlive a short break of the connection',
      max: 600_000,
      maxWhy: 'that long a dead node stays in the tree',
    }),
    default: '10s',
    commands: WITH_ZOOKEEPER,
    option: 'zookeeper.sessionTimeoutMs',
    needs: 'zookeeper',
    sentence: 'how long a ZooKeeper session outlives its connection',
  },
  'console-locks': {
    kind: parsed('path[,path]...', parsePaths),
    commands: CONSOLE,
    needs: 'zookeeper',
    sentence: 'paths of ZooKeeper whose locks the console shows, with those below them',
  },
  'console-data': {
    kind: parsed('path[,path]...', parsePaths),
    commands: CONSOLE,
    needs: 'zookeeper',
    sentence: "roots of Monastery's shared data that the console shows, such as /monastery/root",
  },
  'zookeeper-required': {
    ...ANNOUNCED,
    kind: onOff,
    option: 'zookeeper.required',
    sentence: 'fail at the start when ZooKeeper cannot be reached, instead of working without it',
  },
  service: {
    ...ANNOUNCED,
    kind: checked('name', checkZnodeName),
    option: 'zookeeper.service',
    sentence: 'the service to announce this node under',
  },
  address: {
    ...ANNOUNCED,
    kind: text('host', /^[A-Za-z0-9._:%-]{1,255}$/, 'a host name or an IP address, without a port'),
    default: 'the first of this host that others can reach',
    option: 'zookeeper.address',
    sentence: 'the address to announce',
  },
  port: {
    ...ANNOUNCED,
    kind: integer(1, 65_535),
    option: 'zookeeper.port',
    sentence: 'the port to announce',
  },
  payload: {
    ...OF_SERVICE,
    kind: checked('json', () => undefined),
    option: 'zookeeper.payload',
    sentence: 'what the instance says of itself, as a JSON object; nodeId and version are added',
  },
  'payload-type': {
    ...OF_SERVICE,
    kind: choice('map', 'spring'),
    default: 'map',
    option: 'zookeeper.payloadType',
    sentence: 'how the payload is written; spring is for services of Spring Cloud Zookeeper',
  },
  'uri-spec': {
    ...OF_SERVICE,
    kind: checked('template', parseUriSpec),
    default: 'none, for spring its own',
    option: 'zookeeper.uriSpec',
    sentence: 'how the URL of the instance is made: {scheme}://{address}:{port}/v1, for example',
  },
  'service-base-path': {
    kind: checked('path', checkBasePath),
    default: DEFAULT_BASE_PATH,
    commands: [...CONSOLE, ...SERVICES],
    option: 'zookeeper.basePath',
    needs: 'service',
    sentence: 'the znode of the services that Curator knows of, within the chroot',
  },
  check: {
    ...ANNOUNCED,
    kind: parsed('target', parseCheckTarget),
    default: 'from start to end',
    sentence:
      'announce the service and the endpoints only while the command answers: http(s)://HOST:PORT/PATH with 2xx, or tcp:PORT or tcp:HOST:PORT with a connection; the first good answer suffices at the start',
  },
  'check-interval': {
    ...OF_CHECK,
    kind: duration({ min: 100, minWhy: 'the command has work to do', max: 600_000, maxWhy: 'a failure would be noticed too late' }),
    default: '2s',
    sentence: 'from one check to the next; none may take longer than that, or 5s',
  },
  'check-threshold': {
    ...OF_CHECK,
    kind: integer(1, 1_000),
    default: '3',
    sentence: 'how many failed checks in a row take the service out, and how many good ones put it back',
  },
  config: {
    kind: parsed('app[,profile]', parseConfigName),
    commands: ['run'],
    needs: 'zookeeper',
    sentence: 'the configuration in ZooKeeper that the command gets as variables: db.pool-size as DB_POOL_SIZE',
  },
  'on-config-change': {
    ...OF_CONFIG,
    kind: choice('restart', 'signal:SIGHUP', 'signal:SIGUSR1', 'signal:SIGUSR2', 'signal:SIGWINCH', 'ignore'),
    default: 'ignore',
    sentence: 'what happens when it changes: the command is started again, gets a signal, or nothing but a line in the log',
  },
  'config-spread': {
    ...OF_CONFIG,
    kind: duration({ max: 86_400_000 }),
    default: '10s',
    sentence: 'over how long the nodes spread that, each by its node id',
  },
  'config-one-by-one': {
    ...OF_CONFIG,
    kind: onOff,
    sentence: 'restart one node after the other instead, the next one when the one before has passed its check',
  },
  'config-snapshot': {
    ...OF_CONFIG,
    kind: checked('path', checkPath),
    default: 'none',
    sentence: 'the file with a copy of the configuration, for a start without ZooKeeper and for the command to read',
  },
  'config-required': {
    ...OF_CONFIG,
    kind: onOff,
    sentence: 'fail at the start when ZooKeeper cannot be reached, also where there is a copy',
  },
  'ready-timeout': {
    kind: duration({ max: 86_400_000, open: true }),
    default: '60s',
    commands: HOLDING,
    option: 'zookeeper.readyTimeoutMs',
    needs: 'zookeeper',
    storeOnly: true,
    sentence: 'how long to wait, after taking over an expired lease, until all other nodes know of it',
  },
  http: {
    kind: parsed('host:port', parseListenAddress),
    default: '127.0.0.1:7070; for run nowhere',
    commands: [...CONSOLE, 'discovery serve'],
    sentence: 'where to answer HTTP requests: health, metrics and more; port 0 is any that is free',
  },
  'bearer-token-file': {
    kind: checked('path', checkPath),
    default: 'no token is asked for',
    commands: CONSOLE,
    sentence: 'requests for more than health must send the token in this file; of use beyond loopback',
  },
  'log-level': {
    kind: choice('trace', 'debug', 'info', 'warn', 'error', 'fatal', 'silent'),
    default: 'info',
    commands: ALL,
    sentence: 'how much is logged; stack traces from debug on',
  },
  'log-format': {
    kind: choice('json', 'pretty'),
    default: 'json, on a terminal pretty',
    commands: ALL,
    sentence: 'how log lines look; pretty is for people',
  },
} satisfies Readonly<Record<string, Setting>>;

/** The settings, by their names on the command line: `task-id` is `--task-id` and `NODELEASE_TASK_ID`. */
export type SettingName = keyof typeof ROWS;

/** What the text of a setting is read as. */
export type SettingValue<Name extends SettingName> = (typeof ROWS)[Name]['kind'] extends SettingKind<infer Value> ? Value : never;

/** The kind of a setting, with the type of its value. */
export function kindOf<Name extends SettingName>(name: Name): SettingKind<SettingValue<Name>> {
  return ROWS[name].kind as SettingKind<SettingValue<Name>>;
}

/** The default of a setting, as the table has it. */
export function defaultOf(name: SettingName): string {
  const { default: text = '' }: Setting = ROWS[name];
  return text;
}

/** A row with its name. */
export interface NamedSetting extends Setting {
  readonly name: SettingName;
}

/** Every setting, in the order of the help. */
export const SETTINGS: readonly NamedSetting[] = Object.entries<Setting>(ROWS).map(([name, row]) => ({
  name: name as SettingName,
  ...row,
}));

/** The settings that a command has. */
export function settingsFor(command: string): readonly NamedSetting[] {
  return SETTINGS.filter(({ commands }) => commands.includes(command));
}

/** The name of the environment variable of a setting. */
export function environmentName(name: SettingName): string {
  return `NODELEASE_${name.toUpperCase().replaceAll('-', '_')}`;
}

function parseServers(given: string, label: string): ConnectString {
  if (!/^digest:/i.test(given)) return parseConnectString(given, label);
  // It may be a password.
  throw new ConfigError(label, 'digest:…', 'servers, HOST:PORT[,HOST:PORT]...[/CHROOT] (credentials go to --zookeeper-auth)');
}

/** Which configuration, as `--config` has it. */
function parseConfigName(given: string, label: string): { readonly app: string; readonly profile?: string } {
  const [app = '', profile, more] = given.split(',');
  if (more !== undefined || app === '' || profile === '') throw new ConfigError(label, given, 'APP or APP,PROFILE');
  checkZnodeName(app, label);
  if (profile === undefined) return { app };
  checkZnodeName(profile, label);
  return { app, profile };
}

function checkPath(given: string, label: string): void {
  if (given === '' || given.includes('\0')) throw new ConfigError(label, given, 'the path of a file');
}

/** What a health check asks: a URL, which has to answer with 2xx, or a port, which has to accept a connection. */
export type CheckTarget = { readonly kind: 'http'; readonly url: string } | ({ readonly kind: 'tcp' } & ListenAddress);

const TARGET = 'http://HOST:PORT/PATH, https://HOST:PORT/PATH, tcp:PORT or tcp:HOST:PORT';

function parseCheckTarget(text: string, label: string): CheckTarget {
  if (/^https?:\/\//i.test(text) && URL.canParse(text)) return { kind: 'http', url: new URL(text).href };
  const [, address = ''] = /^tcp:(?!\/\/)(.*)$/.exec(text) ?? [];
  // By this name both of the host's loopback addresses are tried.
  if (/^\d+$/.test(address)) return { kind: 'tcp', host: 'localhost', port: parseInteger(address, label, 1, 65_535) };
  if (!address.includes(':')) throw new ConfigError(label, text, TARGET);
  return { kind: 'tcp', ...parseListenAddress(address, label, 1) };
}

/** Where options stand: those of `acquire()` itself, or those of one of its options. */
type Place = '' | 'zookeeper.' | 'etcd.';

/**
 * Checks that all options are known, and those of the settings' table by their kinds. Types that the compiler sees to are not checked.
 *
 * @param others the names of the options that do not stand in the table
 * @throws {ConfigError} that names the option
 */
export function checkOptions(options: object, place: Place, others: readonly string[]): void {
  const settings = SETTINGS.flatMap(({ option = '', kind }) => {
    const name = option.slice(place.length);
    return option.startsWith(place) && name !== '' && !name.includes('.') ? [{ name, option, kind }] : [];
  });
  const names = [...settings.map(({ name }) => name), ...others];
  const unknown = Object.keys(options).find((name) => !names.includes(name));
  if (unknown !== undefined) {
    throw new ConfigError(place === '' ? 'options' : place.slice(0, -1), unknown, `one of ${names.join(', ')}`);
  }
  for (const { name, option, kind } of settings) {
    const value = (options as Readonly<Record<string, unknown>>)[name];
    if (value !== undefined) kind.check?.(value, option);
  }
}
