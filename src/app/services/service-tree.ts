import { isDeepStrictEqual } from 'node:util';
import type { Clock } from '../../core/base/clock.js';
import { Listeners } from '../../core/base/listeners.js';
import type { EntriesStatus, ServiceEntry } from '../../node/wire/entries-wire.js';
import { ChildrenView } from '../../zookeeper/client/children-view.js';
import type { Znode, ZooKeeper } from '../../zookeeper/client/zookeeper.js';
import { NodeWatcher } from '../../zookeeper/discovery/node-watcher.js';
import { dubboText, isDubboFolder } from '../../zookeeper/services/instance/dubbo-instance.js';
import { decodeInstance } from '../../zookeeper/services/instance/instance-codec.js';
import { claimIn } from '../../zookeeper/services/instance/lease-claim.js';
import { instanceState, jsonPayload } from '../../zookeeper/services/instance/payload-codec.js';
import { shortened } from '../../zookeeper/services/shortened.js';
import { excerpt, MAX_TEXT } from '../http/console/excerpt.js';

interface ServiceTreeOptions {
  /** The caller closes it. */
  readonly zookeeper: ZooKeeper;
  readonly clock: Clock;
  /** The parent of all services, within the chroot. */
  readonly basePath: string;
}

/** Maximum number of znodes that are followed: each has a watch, and takes some kilobytes. */
const MAX_FOLLOWED = 10_000;
const NO_FACTS = { instance: null, text: null, sessionId: null, changedAt: null, node: null, problem: null };

/**
 * All services in Curator's tree and all znodes below them, followed by watches while there is a listener.
 * Changes nothing.
 */
export class ServiceTree {
  readonly #listeners = new Listeners<void>();
  readonly #entries = new Map<string, ServiceEntry>();
  #view: ChildrenView<ServiceEntry> | undefined;
  /** The nodes of the discovery tree, by their node ids and by their task ids. */
  readonly #nodes = new Map<number | string, ServiceEntry['node']>();
  #newNodes: NodeWatcher | undefined;
  #isPartial = false;
  #close: () => void = () => undefined;

  constructor(private readonly options: ServiceTreeOptions) {}

  /** By path, in no particular order. An entry that has not changed is the same object. */
  get entries(): ReadonlyMap<string, ServiceEntry> {
    if (this.#newNodes) this.#updateNodes(this.#newNodes);
    return this.#entries;
  }

  get status(): EntriesStatus {
    const { zookeeper, basePath } = this.options;
    const { state } = zookeeper;
    const away = ('problem' in state && state.problem) || 'there is no connection to ZooKeeper';
    const refused = this.#view?.get(basePath)?.problem ?? null;
    const problem = state.status !== 'connected' ? away : refused && `${basePath} ${refused}`;
    const isWhole = this.#view?.isWhole ?? false;
    return { state: problem === null ? 'ok' : 'failing', problem, isWhole, isPartial: this.#isPartial };
  }

  /**
   * Follows the tree until the returned function is called, and calls `listener` at every possible change. It
   * must not throw.
   */
  follow(listener: () => void): () => void {
    const forget = this.#listeners.add(listener);
    if (this.#listeners.size === 1) this.#open();
    return () => {
      forget();
      if (this.#listeners.size === 0) this.#close();
    };
  }

  #open() {
    const { zookeeper, clock, basePath } = this.options;
    const notify = () => this.#listeners.notify();
    const nodes = new NodeWatcher({ zookeeper, clock });
    nodes.onChange(() => {
      this.#newNodes = nodes;
      notify();
    });
    const forgetState = zookeeper.onState(notify);
    const view = new ChildrenView<ServiceEntry>({
      zookeeper,
      clock,
      path: basePath,
      follow: (_, depth) => this.#followed(depth),
      listed: (path, before) => (before?.problem === null ? before : this.#entry(path, {})),
      decode: (path, znode, before) => {
        const { service, id } = this.#namesOf(path);
        const entry = this.#entry(path, readEntry(service, id ?? '', znode));
        return isDeepStrictEqual(entry, before) ? before : entry;
      },
      unreadable: (path, problem) => this.#entry(path, { problem }),
      onValue: (path, entry) => {
        if (entry === undefined) this.#entries.delete(path);
        else if (path !== basePath) this.#entries.set(path, this.#withNode(entry));
        notify();
      },
      onChange: notify,
    });
    this.#view = view;
    this.#isPartial = false;
    this.#close = () => {
      forgetState();
      nodes.close();
      view.close();
      this.#entries.clear();
    };
    view.start();
  }

  /** Follows services and the znodes below them, unless there are too many already. */
  #followed(depth: number): 'children' | 'data' | undefined {
    this.#isPartial ||= depth > 0 && (this.#view?.size ?? 0) > MAX_FOLLOWED;
    return this.#isPartial ? undefined : depth < 2 ? 'children' : 'data';
  }

  #entry(path: string, facts: Partial<ServiceEntry>): ServiceEntry {
    return { ...NO_FACTS, ...facts, ...this.#namesOf(path) };
  }

  /** The names in the path of a service or an instance. */
  #namesOf(path: string): Pick<ServiceEntry, 'service' | 'id'> {
    const { basePath } = this.options;
    const [service = '', id = null] = path.slice(basePath === '/' ? 1 : basePath.length + 1).split('/');
    return { service, id };
  }

  #updateNodes({ nodes }: NodeWatcher) {
    this.#newNodes = undefined;
    this.#nodes.clear();
    for (const { nodeId, version, taskId } of nodes.values()) {
      const node = { nodeId, version, taskId };
      this.#nodes.set(nodeId, node).set(taskId, node);
    }
    for (const [path, entry] of this.#entries) {
      const now = this.#withNode(entry);
      if (JSON.stringify(now.node) !== JSON.stringify(entry.node)) this.#entries.set(path, now);
    }
  }

  #withNode(entry: ServiceEntry): ServiceEntry {
    const { instance } = entry;
    return instance
      ? { ...entry, node: this.#nodes.get(instance.claim?.nodeId ?? instance.id) ?? null }
      : entry;
  }
}

/** Decodes a znode below a service. Never throws. */
export function readEntry(service: string, id: string, { data, stat }: Znode): Partial<ServiceEntry> {
  const sessionId = stat.owner ?? null;
  const changedAt = new Date(stat.modifiedAt).toISOString();
  const decoded = decodeInstance({ name: service, id, data }, jsonPayload);
  if (decoded.status === 'unreadable')
    return {
      sessionId,
      changedAt,
      text: excerpt(data.toString('utf8', 0, 4 * MAX_TEXT)),
      ...(isDubboFolder(id) ? { isDubboFolder: true } : { problem: decoded.problem }),
    };
  const { name, id: ownId, address, port = null, sslPort = null, serviceType, payload } = decoded.instance;
  const dubbo = dubboText(decoded.instance);
  const isElsewhere = name !== service || !id.startsWith(ownId);
  return {
    instance: {
      id: excerpt(ownId),
      address: address === undefined ? null : excerpt(address),
      port,
      sslPort,
      serviceType,
      state: instanceState(decoded.instance),
      claim: claimIn(payload),
      ...(dubbo && { dubbo: excerpt(dubbo) }),
    },
    text: payload === undefined ? null : excerpt(JSON.stringify(payload)),
    sessionId,
    changedAt,
    problem: isElsewhere
      ? `says that it is ${shortened(name)}/${shortened(ownId)}`
      : stat.childCount > 0
        ? 'has znodes below it'
        : null,
  };
}
