import { checkBasePath, DEFAULT_BASE_PATH } from '../discovery/services/service-path.js';
import { ConfigError } from '../errors.js';
import { parseAuth } from '../zookeeper/access.js';
import { type ConnectString, parseConnectString } from '../zookeeper/connect-string.js';
import { type Announcing, readAnnouncing } from './announcing.js';
import { find, type Given, type Read, type SettingName, type SettingSources } from './sources.js';
import { parseDuration, parseSwitch } from './values.js';

/** How to reach ZooKeeper, and what to announce there. */
export interface ZooKeeperSettings extends Announcing {
  readonly connect: ConnectString;
  /** `digest:user:password`. */
  readonly auth?: string;
  /** How long a session outlives its connection, 1,000 to 600,000. The servers may grant another. @default 10000 */
  readonly sessionTimeoutMs: number;
  /** Fails the start when ZooKeeper cannot be reached. */
  readonly required: boolean;
  /** How long a node that took over an expired lease waits until the others know of it. @default 60000 */
  readonly readyTimeoutMs: number;
  /** Where the services stand that Curator knows of, within the chroot. @default /services */
  readonly basePath: string;
}

/** What is of no use without `zookeeper`. */
const DISCOVERY_SETTINGS: readonly SettingName[] = [
  'zookeeper-auth',
  'zookeeper-session-timeout',
  'zookeeper-required',
  'service',
  'address',
  'port',
  'payload',
  'payload-type',
  'uri-spec',
  'service-base-path',
  'check',
  'check-interval',
  'check-threshold',
  'ready-timeout',
];

/**
 * The settings that are about ZooKeeper; undefined where it is not used.
 *
 * @param names the endpoints to announce, as {@link readEndpoints} found them
 * @throws {ConfigError} naming the setting as the user gave it, the value, and what was expected
 */
export function readZooKeeper(sources: SettingSources, read: Read, names: readonly Given[]): ZooKeeperSettings | undefined {
  const connect = read('zookeeper', (text, label) => {
    if (/^digest:/i.test(text))
      throw new ConfigError(label, 'digest:…', 'servers, HOST:PORT[,HOST:PORT]...[/CHROOT] (credentials go to --zookeeper-auth)');
    return parseConnectString(text, label);
  });
  if (connect === undefined) {
    // Variables may be there for other programs of the same surroundings; a flag is meant for this one.
    const useless = DISCOVERY_SETTINGS.map((name) => find(sources, name)).find((given) => given?.flag);
    if (useless) throw new ConfigError(useless.label, secretive(useless), '--zookeeper beside it (it is of use with discovery only)');
    const named = names.find(({ flag }) => flag);
    if (named)
      throw new ConfigError(
        named.label,
        named.text,
        '--zookeeper beside it (to announce an endpoint), or http://HOST:PORT (the server of a store)',
      );
    return undefined;
  }
  const auth = read('zookeeper-auth', (text, label) => {
    parseAuth(text, label);
    return text;
  });
  const sessionTimeoutMs = read('zookeeper-session-timeout', (text, label) =>
    parseDuration(text, label, {
      least: [1_000, 'at least 1s (a session must outlive a short break of the connection)'],
      most: [600_000, 'at most 10m (that long a dead node stays in the tree)'],
    }),
  );
  const required = read('zookeeper-required', parseSwitch) ?? false;
  const readyTimeoutMs = read('ready-timeout', (text, label) => parseDuration(text, label, { most: [86_400_000, 'at most 24h'] }));
  const basePath = read('service-base-path', (text, label) => {
    checkBasePath(text, label);
    return text;
  });
  return {
    connect,
    required,
    sessionTimeoutMs: sessionTimeoutMs ?? 10_000,
    readyTimeoutMs: readyTimeoutMs ?? 60_000,
    basePath: basePath ?? DEFAULT_BASE_PATH,
    ...readAnnouncing(sources, read, names),
    ...(auth !== undefined && { auth }),
  };
}

/** A password does not belong into a log. */
function secretive({ label, text }: Given): string {
  return label === '--zookeeper-auth' ? 'digest:…' : text;
}
