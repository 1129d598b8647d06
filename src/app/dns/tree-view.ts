import type { Clock } from '../../core/base/clock.js';
import { CLUSTER_NODE_ID_OFFSET } from '../../core/id/cluster-node-id.js';
import { ChildrenView } from '../../zookeeper/client/children-view.js';
import type { SessionState } from '../../zookeeper/client/session-state.js';
import type { ZooKeeper } from '../../zookeeper/client/zookeeper.js';
import { NODES_PATH } from '../../zookeeper/discovery/layout.js';
import { NodeWatcher } from '../../zookeeper/discovery/node-watcher.js';
import { claimIn } from '../../zookeeper/services/instance/lease-claim.js';
import { instanceState, jsonPayload } from '../../zookeeper/services/instance/payload-codec.js';
import type { ServiceInstance } from '../../zookeeper/services/instance/service-instance.js';
import { ServiceCache } from '../../zookeeper/services/service-cache.js';
import { servicePath } from '../../zookeeper/services/service-path.js';
import { type Endpoint, type Facts, factsOf, type Holder, isHost, UNKNOWN } from './zone.js';

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
export function treeView({ zookeeper, clock, basePath, maxStaleMs }: TreeViewOptions) {
  /** By their names in lower case. */
  let names = new Map<string, string>();
  /** The node ids by their tasks; undefined where they have to be read again. */
  let nodeIds: Map<string, number> | undefined;
  const services = new Map<string, ServiceCache>();
  const read = new WeakSet<Followed>();
  /** What could not be read for 5 seconds: no question waits for it. */
  const refused = new WeakSet<Followed>();
  const endpoints = new WeakMap<readonly ServiceInstance[], readonly Endpoint[]>();
  const forgetGone = () => {
    for (const [name, cache] of services) {
      if (names.get(name.toLowerCase()) === name) continue;
      cache.close();
      services.delete(name);
    }
  };
  const follow = <T extends Followed>(followed: T): T => {
    void followed.ready.then(() => read.add(followed));
    return followed;
  };
  const list = new ChildrenView({
    zookeeper,
    clock,
    path: basePath,
    // The names are enough: no child is followed.
    follow: (_, depth) => (depth === 0 ? 'children' : undefined),
    listed: (_path, _before, found) => {
      names = new Map(found.map((name) => [name.toLowerCase(), name]));
      forgetGone();
      return undefined;
    },
    decode: () => undefined,
    unreadable: () => void refused.add(list),
  });
  const watcher = new NodeWatcher({
    zookeeper,
    clock,
    onUnreadable: (path) => path === NODES_PATH && refused.add(watcher),
  });
  watcher.onChange(() => {
    nodeIds = undefined;
  });
  follow(list).start();
  follow(watcher);

  const open = (name: string): ServiceCache => {
    const cache = new ServiceCache({
      ...{ zookeeper, clock, basePath, name, payload: jsonPayload },
      onUnreadable: (path) => path === servicePath(basePath, name) && refused.add(cache),
    });
    services.set(name, cache);
    return follow(cache);
  };
  /** @param value returns undefined where there is no such name */
  const facts = <T>(followed: Followed, value: () => T | undefined): Facts<T> => {
    const { stale, ready } = followed;
    if (!read.has(followed))
      return refused.has(followed) || isAway(zookeeper.state) ? UNKNOWN : { kind: 'pending', again: ready };
    return stale && clock.monotonic() - stale.since > maxStaleMs ? UNKNOWN : factsOf(value());
  };
  /** Of the same list of instances they are the same object. */
  const endpointsOf = (instances: readonly ServiceInstance[]): readonly Endpoint[] => {
    const known = endpoints.get(instances) ?? instances.flatMap(endpointOf);
    endpoints.set(instances, known);
    return known;
  };
  return {
    service(key: string): Facts<readonly Endpoint[]> {
      const name = facts(list, () => names.get(key));
      if (name.kind !== 'known') return name;
      const cache = services.get(name.value) ?? open(name.value);
      return facts(cache, () => endpointsOf(cache.instances));
    },
    node: (id: number): Facts<Holder> =>
      facts(watcher, () => {
        const assignment = watcher.nodes.get(id + CLUSTER_NODE_ID_OFFSET);
        if (assignment === undefined) return undefined;
        const { version, taskId, address, port } = assignment;
        const host = typeof address === 'string' && isHost(address) ? address : undefined;
        return { version, taskId, host, port: typeof port === 'number' ? port : undefined };
      }),
    nodeIdOf(taskId: string): number | undefined {
      nodeIds ??= new Map(Array.from(watcher.nodes.values(), (node) => [node.taskId, node.nodeId] as const));
      return nodeIds.get(taskId);
    },
    staleMs(): number {
      // A service that could never be read makes no answer old: there is none.
      const answered = [...services.values()].filter((each) => read.has(each));
      const since = [list, watcher, ...answered].flatMap(({ stale }) => stale?.since ?? []);
      return since.length === 0 ? 0 : clock.monotonic() - Math.min(...since);
    },
    /** Ends all watches. */
    close(): void {
      for (const followed of [list, watcher, ...services.values()]) followed.close();
    },
  };
}

/** None unless work may be sent there. */
function endpointOf(instance: ServiceInstance): Endpoint[] {
  const { id: taskId, address: host, port, sslPort, payload } = instance;
  if (instanceState(instance) !== 'enabled' || host === undefined || !isHost(host)) return [];
  return [{ host, port: port ?? sslPort, claim: claimIn(payload), taskId }];
}

/** False while the first connection is still being made. */
function isAway(state: SessionState) {
  const isBeginning = state.status === 'connecting' && state.problem === undefined;
  return state.status !== 'connected' && !isBeginning;
}
