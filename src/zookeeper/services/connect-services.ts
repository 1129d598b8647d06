import { checkArguments, checked, checkKnown, kind, maybe, OBJECT, TEXT } from '../../core/base/arguments.js';
import { systemClock, systemRandom } from '../../core/base/system.js';
import type { ZooKeeperTls } from '../client/connection/tls.js';
import {
  DISCOVERY_SESSION_TIMEOUT_MS,
  openZooKeeper,
  type ZooKeeperClient,
} from '../client/zookeeper-client.js';
import { PAYLOAD, type PayloadCodec } from './instance/payload-codec.js';
import { ServiceDiscovery, type ServiceEvent } from './service-discovery.js';
import { BASE_PATH } from './service-path.js';

/** Options of {@link connectServices}. */
export interface ConnectServicesOptions<P> {
  /** Servers and chroot: `zk1:2181,zk2:2181/shop`. */
  readonly connect: string;
  /**
   * Credentials: `digest:user:password`. Only that user can then change what is registered.
   * @default none, and znodes open to all
   */
  readonly auth?: string | undefined;
  /**
   * Whether and how the connection is encrypted: `true` trusts the CAs that Node trusts.
   * @default false
   */
  readonly tls?: boolean | ZooKeeperTls | undefined;
  /**
   * How long instances outlive a dead process, in milliseconds; the servers may grant another.
   * @default 10000
   */
  readonly sessionTimeoutMs?: number | undefined;
  /**
   * The parent of all services, within the chroot; the same for all programs that share them.
   * @default '/services', Spring Cloud's
   */
  readonly basePath?: string | undefined;
  /** The codec of the payload of instances. @default any JSON, unchanged */
  readonly payload?: PayloadCodec<P> | undefined;
  /** Receives the events of registrations. If it throws, the error becomes an uncaught one. */
  readonly onEvent?: ((event: ServiceEvent) => void) | undefined;
}

/** Service discovery with its own session. */
export class ConnectedServices<P> extends ServiceDiscovery<P> implements AsyncDisposable {
  constructor(
    /** The session, which ends with this object. */
    readonly zookeeper: ZooKeeperClient,
    options: Pick<ConnectServicesOptions<P>, 'basePath' | 'payload' | 'onEvent'>,
  ) {
    super({ ...options, zookeeper, clock: systemClock, random: systemRandom });
  }

  /**
   * Unregisters everything, closes all caches and providers, and ends the session. Never rejects; later calls
   * share the result of the first one.
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
 * Service discovery for a process without a node id, or in addition to one. A session with ZooKeeper begins
 * in the background, and everything works as soon as it exists.
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
  checkArguments({ options }, { options: OPTIONS });
  checkKnown(options, OPTION_NAMES);
  const {
    connect,
    auth,
    tls,
    sessionTimeoutMs = DISCOVERY_SESSION_TIMEOUT_MS,
    ...discovery
  } = checked(options, KINDS);
  const zookeeper = openZooKeeper({ connect, auth, tls, sessionTimeoutMs });
  try {
    return new ConnectedServices<P>(zookeeper, discovery);
  } catch (error) {
    void zookeeper.close();
    throw error;
  }
}

const OPTIONS = kind("an object such as { connect: 'zk1:2181' }", OBJECT.is);

const KINDS = {
  connect: kind('servers such as zk1:2181,zk2:2181/shop', TEXT.is),
  basePath: maybe(BASE_PATH),
  payload: maybe(PAYLOAD),
};

const OPTION_NAMES: readonly (keyof ConnectServicesOptions<unknown>)[] = [
  'connect',
  'auth',
  'tls',
  'sessionTimeoutMs',
  'basePath',
  'payload',
  'onEvent',
];
