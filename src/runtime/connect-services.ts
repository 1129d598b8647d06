import { ConfigError } from '../base/errors.js';
import { systemClock, systemRandom } from '../base/system.js';
import type { PayloadCodec } from '../services/payload-codec.js';
import { ServiceDiscovery, type ServiceEvent } from '../services/service-discovery.js';
import type { ZooKeeperTls } from '../zookeeper/tls.js';
import {
  DISCOVERY_SESSION_TIMEOUT_MS,
  openZooKeeper,
  type ZooKeeperClient,
} from '../zookeeper/zookeeper-client.js';

/** How to reach ZooKeeper, and what stands there. */
export interface ConnectServicesOptions<P> {
  /** Servers and chroot: `zk1:2181,zk2:2181/shop`. */
  readonly connect: string;
  /**
   * Credentials: `digest:user:password`. What is registered can be changed by that user alone then.
   * @default none, and znodes open to all
   */
  readonly auth?: string;
  /**
   * Whether the connection is encrypted, and with what: `true` trusts the CAs that Node does.
   * @default false
   */
  readonly tls?: boolean | ZooKeeperTls;
  /**
   * How long instances outlive a dead process, in milliseconds; the servers may grant another.
   * @default 10000
   */
  readonly sessionTimeoutMs?: number;
  /**
   * The parent of all services, within the chroot; to be agreed on with all others.
   * @default '/services', Spring Cloud's
   */
  readonly basePath?: string;
  /** What instances say of themselves. @default any JSON, as it is */
  readonly payload?: PayloadCodec<P>;
  /** Receives what happens to registrations. One that throws has its error surface as an uncaught one. */
  readonly onEvent?: (event: ServiceEvent) => void;
}

/** Service discovery in a session of its own. */
export class ConnectedServices<P> extends ServiceDiscovery<P> implements AsyncDisposable {
  constructor(
    /** The session; it ends with this. */
    readonly zookeeper: ZooKeeperClient,
    options: Pick<ConnectServicesOptions<P>, 'basePath' | 'payload' | 'onEvent'>,
  ) {
    super({ ...options, zookeeper, clock: systemClock, random: systemRandom });
  }

  /**
   * Unregisters everything, closes all caches and providers, and ends the session. Never rejects; later calls
   * share the first one's end.
   */
  override async close(): Promise<void> {
    await super.close();
    await this.zookeeper.close();
  }

  /** The same as {@link close}. */
  [Symbol.asyncDispose](): Promise<void> {
    return this.close();
  }
}

/**
 * Service discovery for a process without a node id, or beside it: a session with ZooKeeper is begun in the
 * background, and everything works as soon as it is there.
 *
 * ```ts
 * await using services = connectServices({ connect: 'zk1:2181,zk2:2181/shop' });
 * const provider = services.provider('orders');
 * await provider.ready;
 * provider.url();
 * ```
 *
 * @throws {ConfigError} when an option is unknown, malformed or out of range
 */
export function connectServices<P = unknown>(options: ConnectServicesOptions<P>): ConnectedServices<P> {
  checkOptions(options);
  const { connect, auth, tls, sessionTimeoutMs = DISCOVERY_SESSION_TIMEOUT_MS, ...discovery } = options;
  const zookeeper = openZooKeeper({
    ...{ connect, tls, clock: systemClock, random: systemRandom, sessionTimeoutMs },
    ...(auth !== undefined && { auth }),
  });
  try {
    return new ConnectedServices<P>(zookeeper, discovery);
  } catch (error) {
    void zookeeper.close();
    throw error;
  }
}

type OptionName = keyof ConnectServicesOptions<unknown>;

const OPTION_NAMES: readonly OptionName[] = [
  'connect',
  'auth',
  'tls',
  'sessionTimeoutMs',
  'basePath',
  'payload',
  'onEvent',
];

/** What the compiler sees to in TypeScript. */
function checkOptions(options: unknown): asserts options is ConnectServicesOptions<unknown> {
  if (typeof options !== 'object' || options === null)
    throw new ConfigError('options', options, "an object such as { connect: 'zk1:2181' }");
  const unknown = Object.keys(options).find((name) => !OPTION_NAMES.some((known) => known === name));
  if (unknown !== undefined) throw new ConfigError('options', unknown, `one of ${OPTION_NAMES.join(', ')}`);
  const { connect, auth, basePath, payload, onEvent } = options as Readonly<Record<string, unknown>>;
  if (typeof connect !== 'string')
    throw new ConfigError('connect', connect, 'servers such as zk1:2181,zk2:2181/shop');
  // What was given may be a password.
  if (auth !== undefined && typeof auth !== 'string')
    throw new ConfigError('auth', typeof auth, 'a text such as digest:user:password');
  if (basePath !== undefined && typeof basePath !== 'string')
    throw new ConfigError('basePath', basePath, 'a path such as /services');
  if (payload !== undefined && !isCodec(payload))
    throw new ConfigError('payload', payload, 'a codec with the methods encode and decode');
  if (onEvent !== undefined && typeof onEvent !== 'function')
    throw new ConfigError('onEvent', onEvent, 'a function');
}

function isCodec(value: unknown): boolean {
  const isFunction = (name: string) =>
    typeof (value as Readonly<Record<string, unknown>>)[name] === 'function';
  return typeof value === 'object' && value !== null && isFunction('encode') && isFunction('decode');
}
