import type { Clock } from '../base/clock.js';
import { NodeWatcher } from '../discovery/node-watcher.js';
import { decodeInstance } from '../services/instance-codec.js';
import { isInService, jsonPayload } from '../services/payload-codec.js';
import type { ServiceType } from '../services/service-instance.js';
import { shortened } from '../services/shortened.js';
import { FirstReads, REFUSED_AFTER_S } from '../zookeeper/first-reads.js';
import { Listeners } from '../zookeeper/listeners.js';
import { pathProblem } from '../zookeeper/znode-path.js';
import type { Znode, ZooKeeper } from '../zookeeper/zookeeper.js';
import { claimOf, type FindLease, type LeaseClaim, leaseFinder, type ServiceLease } from './service-lease.js';

/** The names of a znode in the services' tree: of a service, or of what stands below one. */
interface Place {
  readonly service: string;
  /** Null for the service itself. */
  readonly id: string | null;
}

/** A znode of the services' tree. All texts are others' own words. */
export interface ServiceEntry extends Place {
  /** Null for a service, and for what is no instance: see `problem`. */
  readonly instance: InstanceFacts | null;
  /** The payload as JSON; of what is no instance the data. At most 2,000 characters. */
  readonly text: string | null;
  /** The session that it goes with, 16 hex digits; null for a persistent znode. */
  readonly sessionId: string | null;
  /** Whose node id the instance is; null where neither its payload nor the discovery tree says. */
  readonly lease: ServiceLease | null;
  /** What is wrong with it, as the rest of the sentence "<path> …". */
  readonly problem: string | null;
}

/** What an instance says of itself. */
export interface InstanceFacts {
  readonly address: string | null;
  readonly port: number | null;
  readonly sslPort: number | null;
  readonly serviceType: ServiceType;
  /** `out of service` by the status in its metadata, as Spring's load balancer reads it. */
  readonly state: 'enabled' | 'disabled' | 'out of service';
}

/** How far the tree is known. */
export interface ServiceTreeStatus {
  readonly state: 'ok' | 'failing';
  /** Why it cannot be read. */
  readonly problem: string | null;
  /** Whether all of it has been read once. */
  readonly isWhole: boolean;
  /** Whether there is more than is followed: 10,000 services and instances. */
  readonly isPartial: boolean;
}

export interface ServiceTreeOptions {
  /** The caller closes it. */
  readonly zookeeper: ZooKeeper;
  readonly clock: Clock;
  /** The parent of all services, within the chroot. */
  readonly basePath: string;
}

/** Znodes that are followed at most: each has a watch, and takes some kilobytes. */
const MAX_FOLLOWED = 10_000;
const MAX_TEXT = 2_000;
const UNREAD = `has not let itself be read for ${REFUSED_AFTER_S} s`;
const NO_FACTS = { instance: null, text: null, sessionId: null, lease: null, problem: null };

/** All services in Curator's tree and whatever stands below them, followed by watches while there is a listener. Changes nothing. */
export class ServiceTree {
  readonly #listeners = new Listeners<void>();
  readonly #entries = new Map<string, ServiceEntry>();
  /** What instances say of their leases, by their paths. */
  readonly #claims = new Map<string, LeaseClaim>();
  #findLease: FindLease = () => null;
  #hasNewNodes: NodeWatcher | undefined;
  #reads: FirstReads | undefined;
  #followed = 0;
  #isPartial = false;
  #followers = 0;
  #close: () => void = () => undefined;

  constructor(private readonly options: ServiceTreeOptions) {}

  /** By path, in no particular order. An entry that has not changed is the same object. */
  get entries(): ReadonlyMap<string, ServiceEntry> {
    if (this.#hasNewNodes) this.#updateLeases(this.#hasNewNodes);
    return this.#entries;
  }

  get status(): ServiceTreeStatus {
    const { state } = this.options.zookeeper;
    const reads = { isWhole: this.#reads?.whole ?? false, isPartial: this.#isPartial };
    if (state.status === 'connected') return { state: 'ok', problem: null, ...reads };
    const problem = 'problem' in state ? state.problem : undefined;
    return { state: 'failing', problem: problem ?? 'there is no connection to ZooKeeper', ...reads };
  }

  /** Follows the tree until the returned function is called, and calls `listener` whenever something may be different. It must not throw. */
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
    const reads = new FirstReads({ zookeeper, clock, onWhole: () => this.#listeners.tell() });
    const nodes = new NodeWatcher({ zookeeper, clock });
    this.#reads = reads;
    this.#isPartial = false;
    nodes.onChange(() => {
      this.#hasNewNodes = nodes;
      this.#listeners.tell();
    });
    const forgetState = zookeeper.onState(() => this.#listeners.tell());
    const closeServices = this.#followChildren(basePath, (service) => ({ service, id: null }));
    this.#close = () => {
      forgetState();
      closeServices();
      nodes.close();
      reads.close();
    };
  }

  #updateLeases(nodes: NodeWatcher): void {
    this.#hasNewNodes = undefined;
    this.#findLease = leaseFinder(nodes.nodes.values());
    for (const [path, claim] of this.#claims) {
      const entry = this.#entries.get(path);
      const lease = this.#findLease(claim);
      if (entry && JSON.stringify(lease) !== JSON.stringify(entry.lease)) this.#entries.set(path, { ...entry, lease });
    }
  }

  /** Keeps each child of a znode open for as long as it is there. @returns what closes all of them */
  #followChildren(parent: string, placeOf: (name: string) => Place, onRefused: () => void = () => undefined): () => void {
    const opened = new Map<string, () => void>();
    const update = (names: readonly string[]) => {
      const present = new Set(names);
      for (const [name, close] of opened) {
        if (present.has(name)) continue;
        opened.delete(name);
        this.#followed -= 1;
        close();
      }
      for (const name of present) {
        if (opened.has(name)) continue;
        this.#isPartial ||= this.#followed >= MAX_FOLLOWED;
        if (this.#isPartial) return;
        this.#followed += 1;
        opened.set(name, this.#openChild(`${parent === '/' ? '' : parent}/${name}`, placeOf(name)));
      }
    };
    const read = this.#reading(parent, onRefused);
    const watch = this.options.zookeeper.watchChildren(parent, (names) => read(() => update(names ?? [])));
    return () => {
      watch.close();
      read(() => update([]));
    };
  }

  /** Follows a service, or what stands below one. @returns what closes it */
  #openChild(path: string, place: Place): () => void {
    const set = (facts: Partial<ServiceEntry>) => this.#entries.set(path, { ...NO_FACTS, ...facts, ...place });
    const problem = pathProblem(path);
    if (problem !== undefined) set({ problem: `cannot be asked for: ${problem}` });
    else if (place.id === null) set({});
    const close = problem === undefined ? this.#follow(path, place, set) : () => undefined;
    return () => {
      close();
      this.#entries.delete(path);
      this.#claims.delete(path);
    };
  }

  #follow(path: string, { service, id }: Place, set: (facts: Partial<ServiceEntry>) => void): () => void {
    const onRefused = () => set({ problem: UNREAD });
    if (id === null) return this.#followChildren(path, (name) => ({ service, id: name }), onRefused);
    const read = this.#reading(path, onRefused);
    const watch = this.options.zookeeper.watchData(path, (znode) =>
      read(() => {
        this.#claims.delete(path);
        if (znode === undefined) return this.#entries.delete(path);
        const { facts, claim } = readInstance({ service, id }, znode);
        if (claim) this.#claims.set(path, claim);
        return set({ ...facts, lease: claim ? this.#findLease(claim) : null });
      }),
    );
    return () => {
      watch.close();
      read(() => undefined);
    };
  }

  /** Notes that a znode is to be read. What is returned takes in what was read of it, or that it need not be. */
  #reading(path: string, onRefused: () => void): (take: () => unknown) => void {
    this.#reads?.begin(path, () => {
      onRefused();
      this.#listeners.tell();
      return true;
    });
    return (take) => {
      take();
      this.#reads?.end(path);
      this.#listeners.tell();
    };
  }
}

/** What a znode below a service says. Never throws. */
function readInstance(place: Place & { readonly id: string }, { data, stat }: Znode): { facts: Partial<ServiceEntry>; claim?: LeaseClaim } {
  const decoded = decodeInstance({ name: place.service, id: place.id, data }, jsonPayload);
  const sessionId = stat.owner ?? null;
  if (decoded.status === 'unreadable') {
    return { facts: { sessionId, text: excerpt(data.toString('utf8', 0, 4 * MAX_TEXT)), problem: decoded.problem } };
  }
  const { name, id, address, port = null, sslPort = null, serviceType, enabled, payload } = decoded.instance;
  const state = !enabled ? 'disabled' : isInService(decoded.instance) ? 'enabled' : 'out of service';
  const isElsewhere = name !== place.service || !place.id.startsWith(id);
  const facts = {
    instance: { address: address === undefined ? null : excerpt(address), port, sslPort, serviceType, state } as const,
    text: payload === undefined ? null : excerpt(JSON.stringify(payload)),
    sessionId,
    problem: isElsewhere ? `says that it is ${shortened(name)}/${shortened(id)}` : stat.childCount > 0 ? 'has znodes below it' : null,
  };
  return { facts, claim: claimOf(isElsewhere ? place.id : id, payload) };
}

/** A copy of the beginning: a part of a text keeps all of it in memory. */
function excerpt(text: string): string {
  return Buffer.from(text.slice(0, MAX_TEXT)).toString();
}
