/** One setting of the command line: the flag `--<name>`, and the environment variable of the same name. */
export interface SettingSpec {
  /** Without the leading dashes: `task-id` is `--task-id` and `NODELEASE_TASK_ID`. */
  readonly name: SettingName;
  /** What the value is, for the help: `url`, `duration`; absent for a switch, which is on or off. */
  readonly argument?: string;
  /** Whether the flag may be given several times. */
  readonly repeatable?: true;
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
  | 'wait-poll'
  | 'settings-interval'
  | 'on-retire'
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
  | 'payload'
  | 'payload-type'
  | 'uri-spec'
  | 'service-base-path'
  | 'check'
  | 'check-interval'
  | 'check-threshold'
  | 'ready-timeout'
  | 'http'
  | 'bearer-token-file'
  | 'log-level'
  | 'log-format';

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
    name: 'wait-poll',
    argument: 'time',
    description: 'how often to look at S3 while no node id is free, 100ms to 24h; many who wait share the looks (default: 1.2s)',
  },
  {
    name: 'settings-interval',
    argument: 'time',
    description:
      'how often a holder looks beside its renewals whether the cluster has grown or shrunk, up to 1h (default: at each renewal)',
  },
  {
    name: 'on-retire',
    argument: 'name',
    description:
      'what happens when "nodelease scale" takes the node id out of use: stop, or drain to take no new work and end by itself (default: stop; for serve drain)',
  },
  {
    name: 'node-id',
    argument: 'id',
    description: 'a fixed node id instead of a leased one: a number, or "hostname" for the ordinal at the end of the host name',
  },
  {
    name: 'endpoint',
    argument: 'url|name[:key]',
    repeatable: true,
    description:
      'the server of an S3-compatible store, http(s)://HOST:PORT (default: AWS); for run also, without ://, an endpoint to announce, NAME or NAME:KEY, any number of times (comma-separated in NODELEASE_ENDPOINTS)',
  },
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
  { name: 'address', argument: 'host', description: 'the address to announce (default: the first of this host that others can reach)' },
  { name: 'port', argument: 'n', description: 'the port to announce, 1 to 65535' },
  { name: 'payload', argument: 'json', description: 'what the instance says of itself, as a JSON object; nodeId and version are added' },
  {
    name: 'payload-type',
    argument: 'type',
    description: 'how the payload is written: map, or spring for services of Spring Cloud Zookeeper (default: map)',
  },
  {
    name: 'uri-spec',
    argument: 'template',
    description: 'how the URL of the instance is made: {scheme}://{address}:{port}/v1, for example (default: none, for spring its own)',
  },
  {
    name: 'service-base-path',
    argument: 'path',
    description: 'the znode of the services that Curator knows of, within the chroot (default: /services)',
  },
  {
    name: 'check',
    argument: 'target',
    description:
      'announce the service and the endpoints only while the command answers: http(s)://HOST:PORT/PATH with 2xx, or tcp:PORT or tcp:HOST:PORT with a connection; the first good answer suffices at the start (default: from start to end)',
  },
  {
    name: 'check-interval',
    argument: 'time',
    description: 'from one check to the next, 100ms to 10m; none may take longer than that, or 5s (default: 2s)',
  },
  {
    name: 'check-threshold',
    argument: 'n',
    description: 'how many failed checks in a row take the service out, and how many good ones put it back (default: 3)',
  },
  {
    name: 'ready-timeout',
    argument: 'time',
    description: 'how long to wait, after taking over an expired lease, until all other nodes know of it (default: 60s)',
  },
  {
    name: 'http',
    argument: 'host:port',
    description: 'where to answer HTTP requests: health, metrics and more (default: 127.0.0.1:7070; for run nowhere)',
  },
  {
    name: 'bearer-token-file',
    argument: 'path',
    description: 'who asks over HTTP for more than health must send the token in this file; of use beyond loopback (default: nobody must)',
  },
  { name: 'log-level', argument: 'level', description: 'trace, debug, info, warn, error, fatal or silent (default: info)' },
  { name: 'log-format', argument: 'name', description: 'json, or pretty for people (default: json, unless standard error is a terminal)' },
];

/** What the settings are read from: plain text, as it came from outside. */
export interface SettingSources {
  /** The flags that were given, by {@link SettingName}. */
  readonly flags: Readonly<Record<string, string | readonly string[] | undefined>>;
  /** The environment. An empty variable counts as not set. */
  readonly env: Readonly<Record<string, string | undefined>>;
  /** The name of this host, for `--node-id hostname`. */
  readonly hostname: string;
  /** False for a command that announces no service: what is to be announced is of no use there. @default true */
  readonly announces?: boolean;
}

/** A value, and the name under which its user knows it. */
export interface Given {
  readonly label: string;
  readonly text: string;
  /** From the command line rather than from the environment. */
  readonly flag: boolean;
}

/** The names of the endpoints to announce, with commas between them: the variable of `endpoint` itself is the URL of a server and nothing else. */
export const ENDPOINTS_VARIABLE = 'NODELEASE_ENDPOINTS';

/** Reads one setting, where it is given. */
export type Read = <T>(name: SettingName, parse: (text: string, label: string) => T) => T | undefined;

/** The name of the environment variable of a setting. */
export function environmentName(name: SettingName): string {
  return `NODELEASE_${name.toUpperCase().replaceAll('-', '_')}`;
}

/** The value of a setting: the last flag, else its environment variable; undefined where there is neither. */
export function find(sources: SettingSources, name: SettingName): Given | undefined {
  const given = findAll(sources, name);
  return given.findLast(({ flag }) => flag) ?? given[0];
}

/** All values of a setting: those of its flags, several where it is repeatable, and then its environment variable's. */
export function findAll({ flags, env }: SettingSources, name: SettingName): readonly Given[] {
  const label = environmentName(name);
  const flag = flags[name];
  const texts = flag === undefined ? [] : typeof flag === 'string' ? [flag] : flag;
  const given = texts.map((text) => ({ label: `--${name}`, text, flag: true }));
  const variable = env[label];
  // A command that was itself started by `nodelease run` inherits the id of that run, which must not name a second one.
  if (!variable || (name === 'task-id' && env.NODE_ID_VERSION)) return given;
  return [...given, { label, text: variable, flag: false }];
}
