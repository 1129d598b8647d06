import type { Clock } from '../base/clock.js';
import { FirstReads, REFUSED_AFTER_S } from '../zookeeper/first-reads.js';
import { pathProblem } from '../zookeeper/znode-path.js';
import type { Watch, Znode, ZooKeeper } from '../zookeeper/zookeeper.js';
import {
  type DecodedInstance,
  decodeInstance,
  type OnUnreadable,
  UnreadableReports,
} from './instance-codec.js';
import { FollowedInstances, type FollowedInstancesOptions } from './instance-source.js';
import type { PayloadCodec } from './payload-codec.js';
import type { ServiceInstance } from './service-instance.js';
import { checkBasePath, servicePath } from './service-path.js';

export interface WatchedInstancesOptions<P> extends FollowedInstancesOptions {
  readonly zookeeper: Pick<ZooKeeper, 'state' | 'onState' | 'watchChildren' | 'watchData' | 'children'>;
  readonly clock: Clock;
  /** The znode whose children are the instances; it need not exist. */
  readonly path: string;
  /** Reads a child. Must not throw. */
  readonly decode: (name: string, znode: Znode) => DecodedInstance<P>;
  /**
   * Told once of each znode that cannot be understood, as by {@link UnreadableReports}. Must not throw and
   * must not block.
   */
  readonly onUnreadable?: OnUnreadable | UnreadableReports | undefined;
  /** Called about every 5 seconds while the servers refuse to list the children. */
  readonly onRefused?: (() => void) | undefined;
}

interface Member<P> {
  readonly name: string;
  readonly path: string;
  watch: Watch | undefined;
  /** What `instance` was read from: a write that changes nothing is no news. */
  data: Buffer | undefined;
  instance: ServiceInstance<P> | undefined;
}

/** The problem of a znode whose watch tells nothing. */
const UNREAD = `has not let itself be read for ${REFUSED_AFTER_S} s`;

/**
 * The instances that are children of one znode, in the order of the children's names. The znode itself may
 * come and go.
 *
 * Without a connection nothing vanishes. With the next one everything is read again, and `stale` ends when
 * all of it has been read. An instance that may not be read any more is left out then, one that cannot be
 * understood any more at once. Not guaranteed: that each change is seen, only the last one; that a silent
 * connection is known to be lost before two thirds of the session's time-out.
 *
 * `ready` resolves once all instances have been read. One that the servers refuse delays it by 5 seconds;
 * where they refuse the list, it waits.
 */
export class WatchedInstances<P> extends FollowedInstances<P> {
  readonly #options: WatchedInstancesOptions<P>;
  readonly #reports: UnreadableReports;
  /** In the order of their names. */
  #members = new Map<string, Member<P>>();
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
      this.#follow(names ?? [], reads);
      reads.end(path);
    });
    for (const member of this.#members.values()) this.#watch(member, reads);
  }

  /** @internal */
  protected override stop(): void {
    this.#reads?.close();
    this.#children?.close();
    for (const { watch } of this.#members.values()) watch?.close();
  }

  /** @internal */
  protected override collect(): readonly ServiceInstance<P>[] | undefined {
    return this.#whole ? [...this.#members.values()].flatMap(({ instance }) => instance ?? []) : undefined;
  }

  #onWhole(): void {
    this.staleSince = undefined;
    this.#whole = true;
    this.tell();
  }

  #follow(names: readonly string[], reads: FirstReads): void {
    const before = this.#members;
    this.#members = new Map();
    for (const name of [...names].sort()) {
      const member = before.get(name) ?? this.#open(name);
      if (member !== undefined) this.#members.set(name, member);
    }
    for (const member of before.values()) {
      if (this.#members.has(member.name)) continue;
      member.watch?.close();
      this.#reports.clear(member.path);
      reads.end(member.path);
    }
    for (const member of this.#members.values()) if (member.watch === undefined) this.#watch(member, reads);
    this.tellSoon();
  }

  #open(name: string): Member<P> | undefined {
    const path = `${this.#options.path}/${name}`;
    const problem = pathProblem(path);
    if (problem === undefined) return { name, path, watch: undefined, data: undefined, instance: undefined };
    this.#reports.report(path, `cannot be asked for: ${problem}`);
    return undefined;
  }

  #watch(member: Member<P>, reads: FirstReads): void {
    const { path } = member;
    reads.begin(path, () => {
      this.#set(member, undefined, undefined);
      this.#reports.report(path, UNREAD);
      return true;
    });
    member.watch?.close();
    member.watch = this.#options.zookeeper.watchData(path, (znode) => {
      this.#read(member, znode);
      reads.end(path);
    });
  }

  #read(member: Member<P>, znode: Znode | undefined): void {
    if (znode !== undefined && member.data?.equals(znode.data)) return;
    const decoded = znode && this.#options.decode(member.name, znode);
    this.#set(member, znode?.data, this.#reports.instanceOf(member.path, decoded));
  }

  #set(member: Member<P>, data: Buffer | undefined, instance: ServiceInstance<P> | undefined): void {
    member.data = data;
    if (member.instance === instance) return;
    member.instance = instance;
    this.tellSoon();
  }
}

/** Which service a {@link ServiceCache} follows, and where. */
export interface ServiceCacheOptions<P>
  extends Omit<WatchedInstancesOptions<P>, 'path' | 'decode' | 'onRefused'> {
  /** The znode below which the services stand, as in Curator. */
  readonly basePath: string;
  /** The service. */
  readonly name: string;
  readonly payload: PayloadCodec<P>;
}

/**
 * The instances of a service in Curator's tree, kept up to date by watches, in the order of their znodes'
 * names: what `queryForInstances` would return. Disabled instances are among them; unreadable ones are left
 * out and reported.
 *
 * What was seen last stays while ZooKeeper is away, and `stale` and `ageMs` say for how long that has been.
 * There is a watch for each instance, and one for the service. Several `DYNAMIC_SEQUENTIAL` instances may
 * have one id: their znodes' names tell them apart.
 */
export class ServiceCache<P = unknown> extends WatchedInstances<P> {
  /** @throws {ConfigError} when the base path or the name cannot be a znode's */
  constructor({ basePath, payload, ...options }: ServiceCacheOptions<P>) {
    const { name } = options;
    checkBasePath(basePath);
    super({
      ...options,
      path: servicePath(basePath, name),
      decode: (id, { data }) => decodeInstance({ name, id, data }, payload),
    });
  }
}
