import type { Clock, RandomSource } from '../base/clock.js';
import type { Lease } from '../lease/model/lease.js';
import type { ClusterStatus } from '../lease/operate/inspect.js';
import type { ConnectString } from '../zookeeper/connect-string.js';
import { openZooKeeper, type ZooKeeperClient } from '../zookeeper/zookeeper-client.js';
import { type Announcement, announcedFields } from './announcement.js';
import { Discovery, type DiscoveryEvent, type TenureOrigin } from './discovery.js';
import { DEFAULT_READY_TIMEOUT_MS } from './readiness.js';

/** How to reach ZooKeeper and what to announce there, as settings say it. */
export interface DiscovererOptions {
  readonly connect: string | ConnectString;
  /** `digest:user:password`. @default none */
  readonly auth?: string | undefined;
  /** How long a session outlives its connection, in milliseconds; the servers may grant another. @default 10000 */
  readonly sessionTimeoutMs?: number | undefined;
  /** Whether the start fails where ZooKeeper cannot be reached, or the announcement not be made. @default false */
  readonly required?: boolean | undefined;
  readonly announcement: Announcement;
  /** How long readiness waits for the other nodes, in milliseconds. @default 60000 */
  readonly readyTimeoutMs?: number | undefined;
  readonly clock: Clock;
  readonly random: RandomSource;
  /** Must not block. One that throws has its error surface as an uncaught one, and does no harm here. */
  readonly onEvent?: ((event: DiscoveryEvent) => void) | undefined;
}

/** A held node id, and what discovery needs to know of it. */
export interface DiscoveredLease {
  readonly lease: Lease;
  readonly origin: TenureOrigin;
  /** Reads the leases; undefined where there are none. */
  readonly leases: (() => Promise<ClusterStatus | undefined>) | undefined;
  /** False where the allocation of the node id keeps its znode. */
  readonly announcesNode: boolean;
  /** False to leave out what sends work here until `announceService` of the discovery is called. @default true */
  readonly announcesService?: boolean | undefined;
}

/** How long a start waits for ZooKeeper where it is required, in milliseconds: once for the session, once for the tree. */
const REQUIRED_TIMEOUT_MS = 10_000;

/** Discovery from before there is a node id to its end: one session with ZooKeeper, and in it one {@link Discovery}. */
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
    const { connect, sessionTimeoutMs, auth, clock, random } = options;
    this.zookeeper = openZooKeeper({
      ...{ connect, clock, random },
      ...(sessionTimeoutMs !== undefined && { sessionTimeoutMs }),
      ...(auth !== undefined && { auth }),
    });
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

  /** What is announced, for whoever makes the node id's own znode. */
  get fields(): Record<string, unknown> {
    return announcedFields(this.options.announcement);
  }

  /**
   * Announces a held node id, and keeps it announced. Waits for the tree where ZooKeeper is required.
   *
   * @throws {ConfigError} when a name cannot be a znode's
   * @throws {ZooKeeperError} `timeout`
   * @throws {LeaseLostError} when the lease is lost meanwhile
   * @throws `signal.reason` as soon as `signal` aborts
   */
  async start(held: DiscoveredLease, signal?: AbortSignal): Promise<Discovery> {
    const { announcement, readyTimeoutMs = DEFAULT_READY_TIMEOUT_MS, required, clock, random, onEvent } = this.options;
    this.#discovery = new Discovery({ ...held, zookeeper: this.zookeeper, announcement, readyTimeoutMs, clock, random, onEvent });
    try {
      if (required) await this.#discovery.synced(REQUIRED_TIMEOUT_MS, signal);
    } catch (error) {
      // The loss of the lease closes the discovery: it is the loss that counts.
      held.lease.signal.throwIfAborted();
      throw error;
    }
    return this.#discovery;
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
