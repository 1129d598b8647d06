import type { Clock, RandomSource } from '../base/clock.js';
import type { DecodedInstance, OnUnreadable } from '../services/instance-codec.js';
import {
  FollowedInstances,
  type FollowedInstancesOptions,
  type InstanceSource,
} from '../services/instance-source.js';
import { WatchedInstances } from '../services/service-cache.js';
import type { ServiceInstance } from '../services/service-instance.js';
import { type ProviderChoices, ServiceProvider } from '../services/service-provider.js';
import { pathProblem } from '../zookeeper/znode-path.js';
import type { Watch, Znode, ZooKeeper } from '../zookeeper/zookeeper.js';
import { ZooKeeperError } from '../zookeeper/zookeeper-error.js';
import { type Assignment, decodeAssignment } from './assignment.js';
import { endpointKeysPath, endpointPath } from './tree-paths.js';

/** What a {@link DiscoveryResolver} reads, and where it reports what it cannot read. */
export interface DiscoveryResolverOptions {
  readonly zookeeper: Pick<ZooKeeper, 'state' | 'onState' | 'watchChildren' | 'watchData' | 'children'>;
  readonly clock: Clock;
  readonly random: Pick<RandomSource, 'next'>;
  /**
   * Told of each znode of an endpoint that cannot be understood, with the rest of the sentence "<path> …".
   * Must not throw and must not block.
   */
  readonly onUnreadable?: OnUnreadable | undefined;
}

/** What may be chosen about the provider of an endpoint. */
export interface EndpointChoices extends ProviderChoices<Assignment> {
  /** Which implementation of the endpoint. @default the one without a key */
  readonly key?: string | undefined;
}

/**
 * Finds the nodes that offer an endpoint in the discovery tree:
 * `endpoints/<endpoint>/<key or _>/<service>:<node id>`. Each is an instance: its name is the endpoint, its
 * id that reference, its payload the assignment with the node's own fields. An instance without an address is
 * not picked unless `accept` is given. While ZooKeeper is away a source remembers what it saw last.
 */
export class DiscoveryResolver {
  readonly #open = new Set<InstanceSource<Assignment>>();
  #closed = false;

  constructor(private readonly options: DiscoveryResolverOptions) {}

  /**
   * Follows the nodes that offer an endpoint.
   *
   * @param key which implementation of it; none for the one without a key
   * @throws {ConfigError} when a name cannot be a znode's
   * @throws {ZooKeeperError} `closed` after `close()`
   */
  instances(endpoint: string, key?: string): InstanceSource<Assignment> {
    return this.#track((onClose) => this.#watch(endpoint, endpointPath(endpoint, key), { onClose }));
  }

  /**
   * The same in any implementation, with or without a key. A node that offers it under several keys is listed
   * as often. A key that the servers refuse to list is reported and left out, until they allow it.
   *
   * @throws as {@link instances}
   */
  instancesOfAllKeys(endpoint: string): InstanceSource<Assignment> {
    const { zookeeper, clock } = this.options;
    const path = endpointKeysPath(endpoint);
    const open = (key: string, onRefused: () => void) =>
      this.#watch(endpoint, `${path}/${key}`, { onRefused });
    return this.#track(
      (onClose) => new JoinedInstances({ zookeeper, clock, name: endpoint, path, open, onClose }),
    );
  }

  /**
   * Picks one of the nodes that offer an endpoint for each request. Closing it ends its watches.
   *
   * @throws {ConfigError} when a name cannot be a znode's, or the down policy asks for the impossible
   * @throws {ZooKeeperError} `closed` after `close()`
   */
  provider(endpoint: string, { key, ...choices }: EndpointChoices = {}): ServiceProvider<Assignment> {
    const { clock, random } = this.options;
    const source = this.instances(endpoint, key);
    try {
      return new ServiceProvider({ ...choices, source, clock, random });
    } catch (error) {
      source.close();
      throw error;
    }
  }

  /** Ends all watches. What was seen last can still be asked for. Idempotent. */
  close(): void {
    this.#closed = true;
    for (const source of [...this.#open]) source.close();
  }

  #watch(
    endpoint: string,
    path: string,
    told: { onClose?: () => void; onRefused?: () => void },
  ): WatchedInstances<Assignment> {
    const { zookeeper, clock, onUnreadable } = this.options;
    const decode = (ref: string, znode: Znode) => decodeEndpoint(endpoint, ref, znode);
    return new WatchedInstances({ zookeeper, clock, name: endpoint, path, decode, onUnreadable, ...told });
  }

  #track(open: (onClose: () => void) => InstanceSource<Assignment>): InstanceSource<Assignment> {
    if (this.#closed)
      throw new ZooKeeperError('the resolver has been closed', { fault: 'closed', outcome: 'not-applied' });
    const source = open(() => this.#open.delete(source));
    this.#open.add(source);
    return source;
  }
}

export interface JoinedInstancesOptions<P> extends FollowedInstancesOptions {
  readonly zookeeper: Pick<ZooKeeper, 'state' | 'onState' | 'watchChildren'>;
  /** The znode each of whose children has instances below it; it need not exist. */
  readonly path: string;
  /**
   * Begins to follow the instances below a child. `onRefused` is to be called when the servers refuse to list
   * them.
   */
  readonly open: (name: string, onRefused: () => void) => InstanceSource<P>;
}

/** The instances below one child. One that the servers refuse to let be listed has none to wait for. */
interface Part<P> {
  readonly source: InstanceSource<P>;
  status: 'unread' | 'refused' | 'read';
}

/**
 * The instances below all children of a znode, one child's after the other's, in the order of the children's
 * names. A child that the servers refuse to let be read hides none of the others: it counts as empty until it
 * has been read.
 */
export class JoinedInstances<P> extends FollowedInstances<P> {
  /** By the names of the children, in their order. */
  #parts = new Map<string, Part<P>>();
  #children: Watch | undefined;
  #read = false;
  #whole = false;

  constructor(private readonly options: JoinedInstancesOptions<P>) {
    super(options);
    this.start();
  }

  /**
   * Since when any of them is not followed, also the instances below a child that has just appeared. One that
   * has always been refused does not count.
   */
  override get stale(): { readonly since: number } | undefined {
    const followed = [...this.#parts.values()].filter(({ status }) => status !== 'refused');
    const since = [this.staleSince, ...followed.map(({ source }) => source.stale?.since)].filter(
      (each) => each !== undefined,
    );
    return since.length === 0 ? undefined : { since: Math.min(...since) };
  }

  protected override watch(): void {
    this.#children?.close();
    this.#children = this.options.zookeeper.watchChildren(this.options.path, (names) =>
      this.#follow(names ?? []),
    );
  }

  protected override stop(): void {
    this.#children?.close();
    for (const { source } of this.#parts.values()) source.close();
  }

  protected override collect(): readonly ServiceInstance<P>[] | undefined {
    const parts = [...this.#parts.values()];
    this.#whole ||= this.#read && parts.every(({ status }) => status !== 'unread');
    return this.#whole ? parts.flatMap(({ source }) => source.instances) : undefined;
  }

  #follow(names: readonly string[]): void {
    const present = new Set(names);
    for (const [name, { source }] of this.#parts) if (!present.has(name)) source.close();
    const parts = [...present]
      .filter((name) => pathProblem(`${this.options.path}/${name}`) === undefined)
      .map((name) => [name, this.#parts.get(name) ?? this.#open(name)] as const);
    this.#parts = new Map(parts.sort(([a], [b]) => (a < b ? -1 : 1)));
    this.#read = true;
    this.staleSince = undefined;
    this.tellSoon();
  }

  #open(name: string): Part<P> {
    const onRefused = () => {
      if (part.status !== 'unread') return;
      part.status = 'refused';
      this.tellSoon();
    };
    const part: Part<P> = { source: this.options.open(name, onRefused), status: 'unread' };
    part.source.onChange(() => this.tellSoon());
    void part.source.ready.then(() => {
      part.status = 'read';
      this.tellSoon();
    });
    return part;
  }
}

/** Larger data are not read: they would fill the memory of every reader. */
const MAX_BYTES = 1_048_576;

/**
 * A node that offers an endpoint, as an instance of it. Never throws.
 *
 * @param ref the znode's name, such as `orders:7`
 */
export function decodeEndpoint(
  endpoint: string,
  ref: string,
  { data, stat }: Znode,
): DecodedInstance<Assignment> {
  if (data.length > MAX_BYTES) return { status: 'unreadable', problem: `holds more than ${MAX_BYTES} bytes` };
  const assignment = decodeAssignment(data);
  if (assignment === undefined)
    return { status: 'unreadable', problem: 'does not tell task, node id and version' };
  const { address, port, sslPort } = assignment;
  return {
    status: 'readable',
    instance: {
      name: endpoint,
      id: ref,
      address: typeof address === 'string' && address !== '' ? address : undefined,
      port: portOf(port),
      sslPort: portOf(sslPort),
      payload: assignment,
      registrationTimeUTC: stat.createdAt,
      serviceType: stat.owner === undefined ? 'PERMANENT' : 'DYNAMIC',
      uriSpec: undefined,
      enabled: true,
    },
  };
}

function portOf(value: unknown): number | undefined {
  return Number.isInteger(value) && (value as number) >= 1 && (value as number) <= 65_535
    ? (value as number)
    : undefined;
}
