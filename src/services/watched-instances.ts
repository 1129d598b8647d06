import type { Clock } from '../base/clock.js';
import { FirstReads, REFUSED_AFTER_S } from '../zookeeper/first-reads.js';
import { pathProblem } from '../zookeeper/znode-path.js';
import type { Watch, Znode, ZooKeeper } from '../zookeeper/zookeeper.js';
import { FollowedInstances, type FollowedInstancesOptions } from './instance-source.js';
import type { ServiceInstance } from './service-instance.js';
import { type OnUnreadable, UnreadableReports } from './unreadable-reports.js';

export interface WatchedInstancesOptions<P> extends FollowedInstancesOptions {
  readonly zookeeper: Pick<ZooKeeper, 'state' | 'onState' | 'watchChildren' | 'watchData' | 'children'>;
  readonly clock: Clock;
  /** The znode whose children are the instances; it need not exist. */
  readonly path: string;
  /** What a child tells; `problem` is the rest of the sentence "<path> …". Must not throw. */
  readonly decode: (
    name: string,
    znode: Znode,
  ) => { readonly status: 'readable'; readonly instance: ServiceInstance<P> } | { readonly status: 'unreadable'; readonly problem: string };
  /** Told once of each child that cannot be understood, again when its problem is another, of 1,000 at the most. Must not throw and must not block. */
  readonly onUnreadable?: OnUnreadable | UnreadableReports | undefined;
  /** Called when the servers refuse to list the children, every 5 seconds or so: there is nothing to be told of them. */
  readonly onRefused?: (() => void) | undefined;
}

interface Member<P> {
  readonly name: string;
  readonly path: string;
  watch: Watch | undefined;
  /** What `instance` was read from, so that a write which changes nothing is no news. */
  data: Buffer | undefined;
  instance: ServiceInstance<P> | undefined;
}

/** The problem of a znode whose watch tells nothing. */
const UNREAD = `has not let itself be read for ${REFUSED_AFTER_S} s`;

/**
 * The instances that are children of one znode, in the order of the children's names. They are followed until the end, and so is the znode
 * itself, which Curator's servers remove when it is empty.
 *
 * Without a connection nothing vanishes. With the next one everything is read again, and `stale` ends when all of it has been, however long that
 * takes. An instance that may not be read any more is left out then: while a connection stands the servers do not tell of such a change. One whose
 * data cannot be understood any more is left out, as by a query. Not guaranteed: that each change is seen, only that the last one is; that a
 * silent connection is known to be lost before the client finds out, within two thirds of the session's time-out.
 *
 * `ready` resolves once all instances have been read, however slowly. Those that the servers refuse to let be read hold it up for 5 seconds;
 * where that is the znode above them, there is nothing to go on with.
 */
export class WatchedInstances<P> extends FollowedInstances<P> {
  readonly #options: WatchedInstancesOptions<P>;
  readonly #reports: UnreadableReports;
  readonly #members = new Map<string, Member<P>>();
  /** The members by their names. */
  #order: Member<P>[] = [];
  #reads: FirstReads | undefined;
  #children: Watch | undefined;
  #whole = false;

  constructor(options: WatchedInstancesOptions<P>) {
    super(options);
    this.#options = options;
    this.#reports = UnreadableReports.of(options.onUnreadable);
    this.start();
  }

  /** For how long changes may have gone unnoticed, in milliseconds; 0 while ZooKeeper tells of every one. */
  get ageMs(): number {
    return this.staleSince === undefined ? 0 : this.#options.clock.monotonic() - this.staleSince;
  }

  /** @internal */
  protected override watch(): void {
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

  /** @internal */
  protected override stop(): void {
    this.#reads?.close();
    this.#children?.close();
    for (const { watch } of this.#order) watch?.close();
  }

  /** @internal */
  protected override collect(): readonly ServiceInstance<P>[] | undefined {
    return this.#whole ? this.#order.flatMap(({ instance }) => instance ?? []) : undefined;
  }

  #onWhole(): void {
    this.staleSince = undefined;
    this.#whole = true;
    this.tell();
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
    this.tellSoon();
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
    this.tellSoon();
  }
}
