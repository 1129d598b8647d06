import type { Clock } from '../../core/base/clock.js';
import { CLUSTER_NODE_ID_OFFSET } from '../../core/id/cluster-node-id.js';
import { ChildrenView } from '../../zookeeper/client/children-view.js';
import type { SessionState } from '../../zookeeper/client/session-state.js';
import type { ZooKeeper } from '../../zookeeper/client/zookeeper.js';
import { NodeWatcher } from '../../zookeeper/discovery/node-watcher.js';
import { claimIn } from '../../zookeeper/services/instance/lease-claim.js';
import { isInService, jsonPayload } from '../../zookeeper/services/instance/payload-codec.js';
import type { ServiceInstance } from '../../zookeeper/services/instance/service-instance.js';
import { ServiceCache } from '../../zookeeper/services/service-cache.js';
import { type DnsView, type Endpoint, type Facts, factsOf, type Holder, isHost, UNKNOWN } from './zone.js';

interface TreeViewOptions {
  /** The caller closes it. */
  readonly zookeeper: ZooKeeper;
  readonly clock: Clock;
  /** The parent of the services, within the chroot. */
  readonly basePath: string;
  /** After how long without news nothing is answered, in milliseconds. */
  readonly maxStaleMs: number;
}

/** What is followed in ZooKeeper. */
interface Followed {
  readonly ready: Promise<void>;
  readonly stale: { readonly since: number } | undefined;
}

/**
 * The services in Curator's tree, and the nodes in the discovery tree. A service is followed from the first
 * question for it on, until it is gone. For a name that is no service, no watch is opened.
 */
export class TreeView implements Pick<DnsView, 'service' | 'node' | 'nodeIdOf' | 'staleMs'> {
  /** By their names in lower case. */
  #names = new Map<string, string>();
  readonly #list: ChildrenView<undefined>;
  readonly #nodes: NodeWatcher;
  /** The node ids by their tasks; undefined where they have to be read again. */
  #nodeIds: Map<string, number> | undefined;
  readonly #services = new Map<string, ServiceCache>();
  readonly #read = new WeakSet<Followed>();
  readonly #endpoints = new WeakMap<readonly ServiceInstance[], readonly Endpoint[]>();

  constructor(private readonly options: TreeViewOptions) {
    const { zookeeper, clock, basePath: path } = options;
    this.#list = new ChildrenView({
      zookeeper,
      clock,
      path,
      // The names are enough: no child is followed.
      follow: (_, depth) => (depth === 0 ? 'children' : undefined),
      listed: (_path, _before, names) => {
        this.#names = new Map(names.map((name) => [name.toLowerCase(), name]));
        this.#forgetGone();
        return undefined;
      },
      decode: () => undefined,
    });
    this.#nodes = new NodeWatcher({ zookeeper, clock });
    this.#nodes.onChange(() => {
      this.#nodeIds = undefined;
    });
    this.#follow(this.#list).start();
    this.#follow(this.#nodes);
  }

  service(key: string): Facts<readonly Endpoint[]> {
    const name = this.#facts(this.#list, () => this.#names.get(key));
    if (name.kind !== 'known') return name;
    const cache = this.#services.get(name.value) ?? this.#open(name.value);
    return this.#facts(cache, () => this.#endpointsOf(cache.instances));
  }

  node(id: number): Facts<Holder> {
    return this.#facts(this.#nodes, () => {
      const assignment = this.#nodes.nodes.get(id + CLUSTER_NODE_ID_OFFSET);
      if (assignment === undefined) return undefined;
      const { version, taskId, address, port } = assignment;
      const host = typeof address === 'string' && isHost(address) ? address : undefined;
      return { version, taskId, host, port: typeof port === 'number' ? port : undefined };
    });
  }

  nodeIdOf(taskId: string): number | undefined {
    this.#nodeIds ??= new Map(
      Array.from(this.#nodes.nodes.values(), (node) => [node.taskId, node.nodeId] as const),
    );
    return this.#nodeIds.get(taskId);
  }

  get staleMs(): number {
    const { clock } = this.options;
    const since = [this.#list, this.#nodes, ...this.#services.values()].flatMap(
      ({ stale }) => stale?.since ?? [],
    );
    return since.length === 0 ? 0 : clock.monotonic() - Math.min(...since);
  }

  /** Ends all watches. */
  close(): void {
    for (const followed of [this.#list, this.#nodes, ...this.#services.values()]) followed.close();
  }

  #open(name: string): ServiceCache {
    const cache = new ServiceCache({ ...this.options, name, payload: jsonPayload });
    this.#services.set(name, cache);
    return this.#follow(cache);
  }

  #forgetGone(): void {
    for (const [name, cache] of this.#services) {
      if (this.#names.get(name.toLowerCase()) === name) continue;
      cache.close();
      this.#services.delete(name);
    }
  }

  #follow<T extends Followed>(followed: T): T {
    void followed.ready.then(() => this.#read.add(followed));
    return followed;
  }

  /** @param value returns undefined where there is no such name */
  #facts<T>(followed: Followed, value: () => T | undefined): Facts<T> {
    const { zookeeper, clock, maxStaleMs } = this.options;
    const { stale, ready } = followed;
    if (!this.#read.has(followed))
      return isAway(zookeeper.state) ? UNKNOWN : { kind: 'pending', again: ready };
    return stale && clock.monotonic() - stale.since > maxStaleMs ? UNKNOWN : factsOf(value());
  }

  #endpointsOf(instances: readonly ServiceInstance[]): readonly Endpoint[] {
    const known = this.#endpoints.get(instances);
    if (known) return known;
    const endpoints = instances.flatMap((instance): Endpoint[] => {
      const { id: taskId, address: host, port, sslPort, enabled, payload } = instance;
      if (!enabled || !isInService(instance) || host === undefined || !isHost(host)) return [];
      return [{ host, port: port ?? sslPort, claim: claimIn(payload), taskId }];
    });
    this.#endpoints.set(instances, endpoints);
    return endpoints;
  }
}

/** False while the first connection is still being made. */
function isAway(state: SessionState): boolean {
  const isBeginning = state.status === 'connecting' && state.problem === undefined;
  return state.status !== 'connected' && !isBeginning;
}
