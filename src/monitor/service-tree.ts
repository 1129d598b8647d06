import type { Clock } from '../base/clock.js';
import { Listeners } from '../base/listeners.js';
import type { ServiceEntry, ServicesStatus } from '../console/services-wire.js';
import { NodeWatcher } from '../discovery/node-watcher.js';
import { REFUSED_AFTER_S } from '../zookeeper/first-reads.js';
import { FollowedTree } from '../zookeeper/followed-tree.js';
import { pathProblem } from '../zookeeper/znode-path.js';
import type { ZooKeeper } from '../zookeeper/zookeeper.js';
import { readEntry } from './service-entry.js';

export interface ServiceTreeOptions {
  /** The caller closes it. */
  readonly zookeeper: ZooKeeper;
  readonly clock: Clock;
  /** The parent of all services, within the chroot. */
  readonly basePath: string;
}

/** Znodes that are followed at most: each has a watch, and takes some kilobytes. */
const MAX_FOLLOWED = 10_000;
const UNREAD = `has not let itself be read for ${REFUSED_AFTER_S} s`;
const NO_FACTS = { instance: null, text: null, sessionId: null, node: null, problem: null };

/**
 * All services in Curator's tree and whatever stands below them, followed by watches while there is a
 * listener. Changes nothing.
 */
export class ServiceTree {
  readonly #listeners = new Listeners<void>();
  readonly #entries = new Map<string, ServiceEntry>();
  #tree: FollowedTree | undefined;
  /** Those of the discovery tree, by their node ids and by their task ids. */
  readonly #nodes = new Map<number | string, ServiceEntry['node']>();
  #hasNewNodes: NodeWatcher | undefined;
  #followed = 0;
  #isPartial = false;
  #followers = 0;
  #close: () => void = () => undefined;

  constructor(private readonly options: ServiceTreeOptions) {}

  /** By path, in no particular order. An entry that has not changed is the same object. */
  get entries(): ReadonlyMap<string, ServiceEntry> {
    if (this.#hasNewNodes) this.#updateNodes(this.#hasNewNodes);
    return this.#entries;
  }

  get status(): ServicesStatus {
    const { state } = this.options.zookeeper;
    const reads = { isWhole: this.#tree?.isWhole ?? false, isPartial: this.#isPartial };
    if (state.status === 'connected') return { state: 'ok', problem: null, ...reads };
    const problem = 'problem' in state ? state.problem : undefined;
    return { state: 'failing', problem: problem ?? 'there is no connection to ZooKeeper', ...reads };
  }

  /**
   * Follows the tree until the returned function is called, and calls `listener` whenever something may be
   * different. It must not throw.
   */
  follow(listener: () => void): () => void {
    const forget = this.#listeners.add(listener);
    this.#followers += 1;
    if (this.#followers === 1) this.#open();
    return () => {
      forget();
      this.#followers -= 1;
      if (this.#followers === 0) this.#close();
    };
  }

  #open(): void {
    const { zookeeper, clock, basePath } = this.options;
    const tell = () => this.#listeners.tell();
    const tree = new FollowedTree({ zookeeper, clock, onWhole: tell });
    const nodes = new NodeWatcher({ zookeeper, clock });
    nodes.onChange(() => {
      this.#hasNewNodes = nodes;
      tell();
    });
    const forgetState = zookeeper.onState(tell);
    this.#tree = tree;
    this.#isPartial = false;
    const parent = basePath === '/' ? '' : basePath;
    const closeServices = tree.children(
      basePath,
      (service) => this.#openEntry(`${parent}/${service}`, service, null),
      () => true,
    );
    this.#close = () => {
      forgetState();
      nodes.close();
      closeServices();
      tree.close();
    };
  }

  /**
   * Follows a service, or what stands below one.
   * @returns what closes it; undefined where there is too much already
   */
  #openEntry(path: string, service: string, id: string | null): (() => void) | undefined {
    this.#isPartial ||= this.#followed >= MAX_FOLLOWED;
    if (this.#isPartial) return undefined;
    this.#followed += 1;
    const set = (facts: Partial<ServiceEntry> | undefined) => {
      if (facts) this.#entries.set(path, this.#withNode({ ...NO_FACTS, ...facts, service, id }));
      else this.#entries.delete(path);
      this.#listeners.tell();
    };
    const close = this.#follow(path, service, id, set);
    return () => {
      this.#followed -= 1;
      close();
      set(undefined);
    };
  }

  #follow(
    path: string,
    service: string,
    id: string | null,
    set: (facts: Partial<ServiceEntry> | undefined) => void,
  ): () => void {
    const problem = pathProblem(path);
    const onRefused = () => {
      set({ problem: UNREAD });
      return true;
    };
    if (problem !== undefined || id === null)
      set(problem === undefined ? {} : { problem: `cannot be asked for: ${problem}` });
    if (problem !== undefined || this.#tree === undefined) return () => undefined;
    if (id === null)
      return this.#tree.children(
        path,
        (name) => this.#openEntry(`${path}/${name}`, service, name),
        onRefused,
      );
    return this.#tree.data(path, (znode) => set(znode && readEntry(service, id, znode)), onRefused);
  }

  #updateNodes({ nodes }: NodeWatcher): void {
    this.#hasNewNodes = undefined;
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
