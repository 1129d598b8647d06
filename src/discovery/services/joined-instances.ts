import type { Clock } from '../../clock.js';
import { notify } from '../../zookeeper/listeners.js';
import type { SessionState } from '../../zookeeper/session-state.js';
import { pathProblem } from '../../zookeeper/znode-path.js';
import type { Watch, ZooKeeper } from '../../zookeeper/zookeeper.js';
import type { InstanceSource } from './instance-source.js';
import type { ServiceInstance } from './service-instance.js';

export interface JoinedInstancesOptions<P> {
  readonly zookeeper: Pick<ZooKeeper, 'state' | 'onState' | 'watchChildren'>;
  readonly clock: Clock;
  /** What the instances have in common, for people. */
  readonly name: string;
  /** The znode each of whose children has instances below it; it need not exist. */
  readonly path: string;
  /** Begins to follow the instances below a child. `onRefused` is to be called when the servers refuse to list them: they are gone on without. */
  readonly open: (name: string, onRefused: () => void) => InstanceSource<P>;
  /** Called at the end, once. */
  readonly onClose?: (() => void) | undefined;
}

interface Part<P> {
  readonly name: string;
  readonly source: InstanceSource<P>;
  /** A child whose instances the servers refuse to let be listed has none to wait for. */
  status: 'unread' | 'refused' | 'read';
}

/**
 * The instances below all children of a znode, one child's after the other's, in the order of the children's names. A child that the servers
 * refuse to let be read hides none of the others: it counts as empty until it has been read.
 */
export class JoinedInstances<P> implements InstanceSource<P> {
  /** Resolves once the children, and the instances below each, have been read or refused. Never rejects, and never resolves when closed before. */
  readonly ready: Promise<void>;

  readonly #options: JoinedInstancesOptions<P>;
  readonly #listeners = new Set<(instances: readonly ServiceInstance<P>[]) => void>();
  readonly #forgetSession: () => void;
  #becomeReady: () => void = () => undefined;
  #parts: Part<P>[] = [];
  #instances: readonly ServiceInstance<P>[] = [];
  #children: Watch | undefined;
  /** Since when the children are not followed; what is below them knows by itself. */
  #staleSince: number | undefined;
  #read = false;
  #whole = false;
  #telling = false;
  #closed = false;

  constructor(options: JoinedInstancesOptions<P>) {
    this.#options = options;
    this.ready = new Promise((resolve) => {
      this.#becomeReady = resolve;
    });
    this.#staleSince = options.clock.monotonic();
    this.#forgetSession = options.zookeeper.onState((state) => this.#onSession(state));
    this.#onSession(options.zookeeper.state);
  }

  get name(): string {
    return this.#options.name;
  }

  /** Empty until {@link ready}. */
  get instances(): readonly ServiceInstance<P>[] {
    return this.#instances;
  }

  /** Since when any of them is not followed, also the instances below a child that has just appeared. One that has always been refused does not count. */
  get stale(): { readonly since: number } | undefined {
    let since = this.#staleSince;
    for (const { source, status } of this.#parts) {
      const { stale } = source;
      if (status !== 'refused' && stale !== undefined && !(since !== undefined && since <= stale.since)) since = stale.since;
    }
    return since === undefined ? undefined : { since };
  }

  /** Calls `listener` after every change, from {@link ready} on. */
  onChange(listener: (instances: readonly ServiceInstance<P>[]) => void): () => void {
    // Each gets an identity of its own: the same function may be given twice.
    const own = (instances: readonly ServiceInstance<P>[]) => listener(instances);
    if (!this.#closed) this.#listeners.add(own);
    return () => this.#listeners.delete(own);
  }

  close(): void {
    if (this.#closed) return;
    this.#closed = true;
    this.#forgetSession();
    this.#listeners.clear();
    this.#staleSince ??= this.#options.clock.monotonic();
    this.#children?.close();
    for (const { source } of this.#parts) source.close();
    this.#options.onClose?.();
  }

  #onSession({ status }: SessionState): void {
    if (this.#closed) return;
    this.#staleSince ??= this.#options.clock.monotonic();
    if (status !== 'connected') return;
    // A new watch tells when it has read, and one that stood tells only when something has changed.
    this.#children?.close();
    this.#children = this.#options.zookeeper.watchChildren(this.#options.path, (names) => this.#follow(names ?? []));
  }

  #follow(names: readonly string[]): void {
    const present = new Set(names);
    const known = new Set<string>();
    const parts = this.#parts.filter((part) => {
      if (!present.has(part.name)) part.source.close();
      else known.add(part.name);
      return present.has(part.name);
    });
    for (const name of present)
      if (!known.has(name) && pathProblem(`${this.#options.path}/${name}`) === undefined) parts.push(this.#open(name));
    this.#parts = parts.sort((a, b) => (a.name < b.name ? -1 : 1));
    this.#read = true;
    this.#staleSince = undefined;
    this.#tellSoon();
  }

  #open(name: string): Part<P> {
    const onRefused = () => {
      if (part.status !== 'unread') return;
      part.status = 'refused';
      this.#tellSoon();
    };
    const part: Part<P> = { name, source: this.#options.open(name, onRefused), status: 'unread' };
    part.source.onChange(() => this.#tellSoon());
    void part.source.ready.then(() => {
      part.status = 'read';
      this.#tellSoon();
    });
    return part;
  }

  #tellSoon(): void {
    if (this.#telling) return;
    this.#telling = true;
    queueMicrotask(() => {
      this.#telling = false;
      if (!this.#closed) this.#tell();
    });
  }

  #tell(): void {
    this.#whole ||= this.#read && this.#parts.every(({ status }) => status !== 'unread');
    if (!this.#whole) return;
    const instances = this.#parts.flatMap(({ source }) => source.instances);
    const before = this.#instances;
    if (instances.length !== before.length || instances.some((instance, index) => instance !== before[index])) {
      this.#instances = instances;
      // Whoever is told first may end it for the others.
      for (const listener of [...this.#listeners]) if (this.#listeners.has(listener)) notify(listener, instances);
    }
    this.#becomeReady();
  }
}
