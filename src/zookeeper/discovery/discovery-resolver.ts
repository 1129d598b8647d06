import { checkArguments, checked, isPort } from '../../core/base/arguments.js';
import { systemClock, systemRandom } from '../../core/base/system.js';
import type { ViewContext } from '../client/children-view.js';
import { closedError, type TimeOptions, type TimeSources, type Znode } from '../client/zookeeper.js';
import type { DecodedInstance, OnUnreadable } from '../services/instance/instance-codec.js';
import {
  type InstanceSource,
  WatchedInstances,
  type WatchedInstancesOptions,
} from '../services/service-cache.js';
import { type ProviderChoices, providerOf, type ServiceProvider } from '../services/service-provider.js';
import { type Assignment, decodeAssignment, endpointKeysPath, endpointPath } from './layout.js';

/** Options of {@link DiscoveryResolver}. */
export interface DiscoveryResolverOptions extends Pick<ViewContext, 'zookeeper'>, TimeOptions {
  /**
   * Called with each znode of an endpoint that cannot be understood, and the rest of the sentence "<path> …".
   * Must not throw and must not block.
   */
  readonly onUnreadable?: OnUnreadable | undefined;
}

/** Options of the provider of an endpoint. */
export interface EndpointChoices extends ProviderChoices<Assignment> {
  /** Which implementation of the endpoint. @default the one without a key */
  readonly key?: string | undefined;
}

/**
 * Finds the nodes that offer an endpoint in the discovery tree:
 * `endpoints/<endpoint>/<key or _>/<service>:<node id>`. Each node is an instance: its name is the endpoint,
 * its id that reference, its payload the assignment with the node's own fields. An instance without an
 * address is not picked unless `accept` is given. While ZooKeeper is away a source keeps its last state.
 */
export class DiscoveryResolver {
  readonly #open = new Set<InstanceSource<Assignment>>();
  readonly #options: DiscoveryResolverOptions & TimeSources;
  #closed = false;

  constructor(options: DiscoveryResolverOptions) {
    const { clock = systemClock, random = systemRandom } = checked(options);
    this.#options = { ...options, clock, random };
    checkArguments({ zookeeper: options.zookeeper });
  }

  /**
   * Follows the nodes that offer an endpoint.
   *
   * @param key which implementation of it; none for the one without a key
   * @throws {ConfigError} when a name cannot be a znode's
   * @throws {ZooKeeperError} `closed` after `close()`
   */
  instances(endpoint: string, key?: string): InstanceSource<Assignment> {
    return this.#watch(endpoint, endpointPath(endpoint, key));
  }

  /**
   * The same in any implementation, with or without a key. A node that offers it under several keys is listed
   * as often. A key that the servers refuse to list is reported and left out, until they allow it.
   *
   * @throws as {@link instances}
   */
  instancesOfAllKeys(endpoint: string): InstanceSource<Assignment> {
    return this.#watch(endpoint, endpointKeysPath(endpoint), (_, depth) => (depth < 2 ? 'children' : 'data'));
  }

  /**
   * Picks one of the nodes that offer an endpoint for each request. Closing it ends its watches.
   *
   * @throws {ConfigError} when a name cannot be a znode's, or the down policy is impossible
   * @throws {ZooKeeperError} `closed` after `close()`
   */
  provider(endpoint: string, options: EndpointChoices = {}): ServiceProvider<Assignment> {
    const { key, ...choices } = checked(options);
    const { clock, random } = this.#options;
    return providerOf({ ...choices, source: this.instances(endpoint, key), clock, random });
  }

  /** Ends all watches. The last state can still be read. Idempotent. */
  close(): void {
    this.#closed = true;
    for (const source of [...this.#open]) source.close();
  }

  #watch(
    endpoint: string,
    path: string,
    follow?: WatchedInstancesOptions<Assignment>['follow'],
  ): InstanceSource<Assignment> {
    if (this.#closed) throw closedError('the resolver');
    const source: InstanceSource<Assignment> = new WatchedInstances<Assignment>({
      ...this.#options,
      ...{ name: endpoint, path, follow },
      decode: (ref, znode) => decodeEndpoint(endpoint, ref, znode),
      onClose: () => this.#open.delete(source),
    });
    this.#open.add(source);
    return source;
  }
}

/** Larger data are not read: they would fill the memory of every reader. */
const MAX_BYTES = 1_048_576;

/**
 * A node that offers an endpoint, as an instance of it. Never throws.
 *
 * @param ref the znode's name, such as `orders:7`
 */
function decodeEndpoint(endpoint: string, ref: string, { data, stat }: Znode): DecodedInstance<Assignment> {
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
      port: isPort(port) ? port : undefined,
      sslPort: isPort(sslPort) ? sslPort : undefined,
      payload: assignment,
      registrationTimeUTC: stat.createdAt,
      serviceType: stat.owner === undefined ? 'PERMANENT' : 'DYNAMIC',
      uriSpec: undefined,
      enabled: true,
    },
  };
}
