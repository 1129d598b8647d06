import type { Clock } from '../../clock.js';
import { notify } from '../../zookeeper/listeners.js';
import type { SessionState } from '../../zookeeper/session-state.js';
import { pathProblem } from '../../zookeeper/znode-path.js';
import type { Watch, Znode, ZooKeeper } from '../../zookeeper/zookeeper.js';
import { FirstReads, PATIENCE_S } from '../first-reads.js';
import type { InstanceSource } from './instance-source.js';
import type { ServiceInstance } from './service-instance.js';
import { type OnUnreadable, UnreadableReports } from './unreadable-reports.js';

export interface WatchedInstancesOptions<P> {
  readonly zookeeper: Pick<ZooKeeper, 'state' | 'onState' | 'watchChildren' | 'watchData' | 'children'>;
  readonly clock: Clock;
  /** What the instances have in common, for people. */
  readonly name: string;
  /** The znode whose children are the instances; it need not exist. */
  readonly path: string;
  /** What a child tells; `problem` is the rest of the sentence "<path> …". Must not throw. */
  readonly decode: (
    name: string,
    znode: Znode,
  ) => { readonly status: 'readable'; readonly instance: ServiceInstance<P> } | { readonly status: 'unreadable'; readonly problem: string };
  readonly onUnreadable?: OnUnreadable | UnreadableReports | undefined;
  /** Called when the servers refuse to list the children, every 5 seconds or so: there is nothing to be told of them. */
  readonly onRefused?: (() => void) | undefined;
  /** Called at the end, once. */
  readonly onClose?: (() => void) | undefined;
}

interface Member<P> {
  readonly name: string;
  readonly path: string;
  watch: Watch | undefined;
  /** What `instance` was read from, so that a write which changes nothing is no news. */
  data: Buffer | undefined;
  instance: ServiceInstance<P> | undefined;
}

/** Of a znode that is watched, but never told. */
const UNREAD = `has not let itself be read for ${PATIENCE_S} s`;

/**
 * The instances that stand as children of one znode, each as its data tell it, in the order of the children's names. They are followed
 * until the end: instances that come, change, go and come again, and the znode itself, which Curator's servers remove when it is empty.
 *
 * While there is no connection nothing vanishes. With the next one everything is read again: what has changed meanwhile changes here as it
 * is read, and `stale` ends when all of it has been, however long that takes. An instance that the servers refuse to let be read any more is left
 * out then; while a connection stands they tell nobody of such a change. An instance whose data cannot be understood any more is left out,
 * as a query would: its owner has said something else since. Not guaranteed: that each change is seen, only that the last one is; nor that a
 * connection which stands still is known to be lost before the client finds out, within two thirds of the session's time-out.
 */
export class WatchedInstances<P> implements InstanceSource<P> {
  /**
   * Resolves once all instances have been read, however slowly. Those that the servers refuse to let be read hold it up for 5 seconds; where that is the znode
   * above them, there is nothing to go on with. Never rejects, and never resolves when closed before.
   */
  readonly ready: Promise<void>;

  readonly #options: WatchedInstancesOptions<P>;
  readonly #members = new Map<string, Member<P>>();
  readonly #listeners = new Set<(instances: readonly ServiceInstance<P>[]) => void>();
  readonly #reports: UnreadableReports;
  readonly #forgetSession: () => void;
  #becomeReady: () => void = () => undefined;
  /** The members by their names. */
  #order: Member<P>[] = [];
  #instances: readonly ServiceInstance<P>[] = [];
  #reads: FirstReads | undefined;
  #children: Watch | undefined;
  #staleSince: number | undefined;
  #changed = false;
  #told = false;
  #telling = false;
  #closed = false;

  constructor(options: WatchedInstancesOptions<P>) {
    this.#options = options;
    this.#reports = UnreadableReports.of(options.onUnreadable);
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

  /**
   * Undefined while ZooKeeper tells of every change; otherwise since when it does not, in milliseconds on the monotonic clock: from the loss
   * of the connection until everything has been read again with another, and from the beginning until {@link ready}.
   */
  get stale(): { readonly since: number } | undefined {
    return this.#staleSince === undefined ? undefined : { since: this.#staleSince };
  }

  /** For how long changes may have gone unnoticed, in milliseconds; 0 while ZooKeeper tells of every one. */
  get ageMs(): number {
    return this.#staleSince === undefined ? 0 : this.#options.clock.monotonic() - this.#staleSince;
  }

  /** Calls `listener` after every change, from {@link ready} on. Changes that one packet of the servers tells are told as one. */
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
    this.#reads?.close();
    this.#children?.close();
    for (const { watch } of this.#order) watch?.close();
    this.#options.onClose?.();
  }

  #onSession({ status }: SessionState): void {
    if (this.#closed) return;
    this.#staleSince ??= this.#options.clock.monotonic();
    if (status === 'connected') this.#lookAgain();
  }

  /** Opens all watches anew: a new watch tells when it has read, and one that stood tells only when something has changed. */
  #lookAgain(): void {
    const { zookeeper, clock, path, onRefused } = this.#options;
    this.#reads?.close();
    const reads = new FirstReads({ zookeeper, clock, onWhole: () => this.#onWhole() });
    this.#reads = reads;
    reads.begin(path, () => {
      this.#reports.report(path, UNREAD);
      onRefused?.();
      return false;
    });
    this.#children?.close();
    this.#children = zookeeper.watchChildren(path, (names) => {
      this.#reports.clear(path);
      this.#follow(names ?? []);
      reads.end(path);
    });
    for (const member of this.#order) this.#watch(member, reads);
  }

  #onWhole(): void {
    this.#staleSince = undefined;
    this.#told = true;
    this.#tell();
    this.#becomeReady();
  }

  #follow(names: readonly string[]): void {
    const present = new Set(names);
    const staying = this.#order.filter((member) => present.has(member.name) || this.#forget(member));
    const coming: Member<P>[] = [];
    for (const name of present) {
      const member = this.#members.has(name) ? undefined : this.#open(name);
      if (member !== undefined) coming.push(member);
    }
    // What stays is in order already, which makes this cheap.
    this.#order = coming.length === 0 ? staying : [...staying, ...coming].sort((a, b) => (a.name < b.name ? -1 : 1));
    for (const member of coming) this.#watch(member, this.#reads);
    this.#tellSoon();
  }

  #open(name: string): Member<P> | undefined {
    const path = `${this.#options.path}/${name}`;
    const problem = pathProblem(path);
    if (problem !== undefined) {
      this.#reports.report(path, `cannot be asked for: ${problem}`);
      return undefined;
    }
    const member: Member<P> = { name, path, watch: undefined, data: undefined, instance: undefined };
    this.#members.set(name, member);
    return member;
  }

  #forget(member: Member<P>): false {
    member.watch?.close();
    this.#members.delete(member.name);
    this.#reports.clear(member.path);
    this.#reads?.end(member.path);
    if (member.instance !== undefined) this.#changed = true;
    return false;
  }

  #watch(member: Member<P>, reads: FirstReads | undefined): void {
    const { path } = member;
    reads?.begin(path, () => {
      this.#set(member, undefined, undefined);
      this.#reports.report(path, UNREAD);
      return true;
    });
    member.watch?.close();
    member.watch = this.#options.zookeeper.watchData(path, (znode) => {
      this.#read(member, znode);
      reads?.end(path);
    });
  }

  #read(member: Member<P>, znode: Znode | undefined): void {
    if (znode === undefined) {
      this.#reports.clear(member.path);
      this.#set(member, undefined, undefined);
      return;
    }
    if (member.data?.equals(znode.data)) return;
    const told = this.#options.decode(member.name, znode);
    if (told.status === 'readable') this.#reports.clear(member.path);
    else this.#reports.report(member.path, told.problem);
    this.#set(member, znode.data, told.status === 'readable' ? told.instance : undefined);
  }

  #set(member: Member<P>, data: Buffer | undefined, instance: ServiceInstance<P> | undefined): void {
    member.data = data;
    if (member.instance === instance) return;
    member.instance = instance;
    this.#changed = true;
    this.#tellSoon();
  }

  /** Once for everything that the same packet of the server tells. */
  #tellSoon(): void {
    if (this.#telling || !this.#changed || !this.#told) return;
    this.#telling = true;
    queueMicrotask(() => {
      this.#telling = false;
      if (!this.#closed) this.#tell();
    });
  }

  #tell(): void {
    if (!this.#changed) return;
    this.#changed = false;
    const instances: ServiceInstance<P>[] = [];
    for (const { instance } of this.#order) if (instance !== undefined) instances.push(instance);
    this.#instances = instances;
    // Whoever is told first may end it for the others.
    for (const listener of [...this.#listeners]) if (this.#listeners.has(listener)) notify(listener, instances);
  }
}
