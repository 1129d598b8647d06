import { until, withTimeout } from '../../core/base/abort.js';
import { checkArguments, checked, FLAG, maybe, OBJECT } from '../../core/base/arguments.js';
import type { ConnectString } from '../client/connect-string.js';
import {
  DISCOVERY_SESSION_TIMEOUT_MS,
  openZooKeeper,
  type ZooKeeperClient,
  type ZooKeeperOptions,
} from '../client/zookeeper-client.js';
import { encodeInstance } from '../services/instance/instance-codec.js';
import { jsonPayload } from '../services/instance/payload-codec.js';
import { refusalOf } from '../services/mixed-payloads.js';
import { DEFAULT_BASE_PATH, instancePath } from '../services/service-path.js';
import { announcedFields, routingInstance } from './announcement.js';
import { Discovery, type DiscoveryOptions } from './discovery.js';

/** How to reach ZooKeeper, and the announcement, as in the settings. */
export interface DiscovererOptions
  extends Pick<DiscoveryOptions, 'announcement' | 'clock' | 'random' | 'onEvent'> {
  readonly connect: string | ConnectString;
  /** `digest:user:password`. @default none */
  readonly auth?: string | undefined;
  readonly tls?: ZooKeeperOptions['tls'];
  /**
   * How long a session outlives its connection, in milliseconds; the servers may grant another.
   * @default 10000
   */
  readonly sessionTimeoutMs?: number | undefined;
  /**
   * Whether the start fails where ZooKeeper cannot be reached, or the announcement not be made.
   * @default false
   */
  readonly required?: boolean | undefined;
  /** How long readiness waits for the other nodes, in milliseconds. @default 60000 */
  readonly readyTimeoutMs?: number | undefined;
}

/** The facts of a held node id that discovery needs. */
export type DiscoveredLease = Pick<
  DiscoveryOptions,
  'lease' | 'origin' | 'leases' | 'announcesNode' | 'announcesService'
>;

/**
 * How long a start waits for ZooKeeper where it is required, in milliseconds: once for the session, once for
 * what is registered already, once for the tree.
 */
const REQUIRED_TIMEOUT_MS = 10_000;
/**
 * How long any other start waits for the first attempt to connect, and then for what is registered already,
 * in milliseconds.
 */
const ASKED_TIMEOUT_MS = 1_000;
/** How long readiness waits for the other nodes by default, in milliseconds. */
const DEFAULT_READY_TIMEOUT_MS = 60_000;

const KINDS = { announcement: OBJECT, required: maybe(FLAG) };

/**
 * Discovery from before there is a node id to its end: one session with ZooKeeper, and in it one
 * {@link Discovery}.
 */
export class Discoverer {
  /** The session; {@link close} ends it. */
  readonly zookeeper: ZooKeeperClient;
  #discovery: Discovery | undefined;

  /**
   * Begins to connect, in the background.
   *
   * @throws {ConfigError} when the connect string or the credentials are malformed
   */
  constructor(private readonly options: DiscovererOptions) {
    const {
      connect,
      sessionTimeoutMs = DISCOVERY_SESSION_TIMEOUT_MS,
      auth,
      tls,
      clock,
      random,
    } = checked(options, KINDS);
    checkArguments({ clock, random });
    this.zookeeper = openZooKeeper({ connect, auth, tls, clock, random, sessionTimeoutMs });
  }

  /**
   * Waits for the session where ZooKeeper is required, before a node id is taken for nothing.
   *
   * @throws {ZooKeeperError} `timeout`
   * @throws `signal.reason` as soon as `signal` aborts
   */
  async connected(signal: AbortSignal | undefined): Promise<void> {
    if (!this.options.required) return;
    try {
      await this.zookeeper.whenConnected({ timeoutMs: REQUIRED_TIMEOUT_MS, signal });
    } catch (error) {
      signal?.throwIfAborted();
      throw error;
    }
  }

  /** The announced fields, for the creator of the node id's own znode. */
  get fields(): Record<string, unknown> {
    return announcedFields(this.options.announcement);
  }

  /**
   * Announces a held node id, and keeps it announced. Waits for the tree where ZooKeeper is required.
   *
   * @throws {ConfigError} when a name cannot be a znode's
   * @throws {ZooKeeperError} `timeout`; `mixed-payloads` when the service would be unreadable for the program of
   * a present instance. Nothing has been announced then
   * @throws {LeaseLostError} when the lease is lost meanwhile
   * @throws `signal.reason` as soon as `signal` aborts
   */
  async start(held: DiscoveredLease, signal?: AbortSignal): Promise<Discovery> {
    const { readyTimeoutMs = DEFAULT_READY_TIMEOUT_MS } = this.options;
    const refusal = await this.#refusalOf(held, signal);
    if (refusal) throw refusal;
    this.#discovery = new Discovery({ ...this.options, ...held, zookeeper: this.zookeeper, readyTimeoutMs });
    try {
      if (this.options.required) await this.#discovery.synced(REQUIRED_TIMEOUT_MS, signal);
    } catch (error) {
      // The loss of the lease closes the discovery: it is the loss that counts.
      held.lease.signal.throwIfAborted();
      throw error;
    }
    return this.#discovery;
  }

  /** Of the service's instance. Undefined, too, where ZooKeeper cannot be asked at the moment. */
  async #refusalOf({ lease }: DiscoveredLease, signal?: AbortSignal) {
    const { zookeeper } = this;
    const { announcement, required, clock, random } = this.options;
    const timeoutMs = required ? REQUIRED_TIMEOUT_MS : ASKED_TIMEOUT_MS;
    const instance = routingInstance(announcement, lease, { clock, random });
    if (instance === undefined) return undefined;
    const path = instancePath(announcement.basePath ?? DEFAULT_BASE_PATH, instance.name, instance.id);
    await until(
      (listener) => zookeeper.onState(listener),
      () => zookeeper.state.status !== 'connecting' || zookeeper.state.problem !== undefined || undefined,
      (attempted) => withTimeout(clock, timeoutMs, attempted, signal),
    );
    if (zookeeper.state.status !== 'connected') return undefined;
    const data = encodeInstance(instance, jsonPayload);
    const asked = refusalOf(zookeeper, { path, data }, { timeoutMs, signal });
    return asked.catch(() => signal?.throwIfAborted());
  }

  /** Takes the node out of the tree, except for an allocated node id itself. Never rejects. */
  async leave(): Promise<void> {
    await this.#discovery?.leave();
  }

  /** The same, and ends the session. Never rejects. */
  async close(): Promise<void> {
    await (this.#discovery ?? this.zookeeper).close();
  }
}
