import { onAbort } from '../../core/base/abort.js';
import { checkArguments, listOf, OBJECT } from '../../core/base/arguments.js';
import { type ChildrenViewOptions, FollowedZnodes, type ViewContext } from '../client/children-view.js';
import { nameAt } from '../client/znode-path.js';
import type { Znode } from '../client/zookeeper.js';
import {
  type DecodedInstance,
  decodeInstance,
  type OnUnreadable,
  UnreadableReports,
} from './instance/instance-codec.js';
import { PAYLOAD, type PayloadCodec } from './instance/payload-codec.js';
import type { ServiceInstance } from './instance/service-instance.js';
import { checkBasePath, servicePath } from './service-path.js';

/**
 * Where the instances of a service come from: a cache of Curator's tree, the providers of an endpoint, a
 * fixed list.
 */
export interface InstanceSource<P = unknown> {
  /** The common name of the instances, for people: a service's name. */
  readonly name: string;
  /**
   * The last known instances, including disabled ones, in a stable order. The same array until they change,
   * then another one.
   */
  readonly instances: readonly ServiceInstance<P>[];
  /**
   * Resolves once they have been read for the first time. Never rejects, and never resolves when closed
   * before.
   */
  readonly ready: Promise<void>;
  /**
   * Undefined while everything has been read since the last gap, so that every change is seen; otherwise the
   * beginning of the gap, in milliseconds on the monotonic clock. Until then `instances` was right.
   */
  readonly stale: { readonly since: number } | undefined;
  /**
   * Calls `listener` after every change, with the new instances, until the returned function is called.
   * Listeners must not throw.
   */
  onChange(listener: (instances: readonly ServiceInstance<P>[]) => void): () => void;
  /** Stops following changes. The last state can still be read. Idempotent. */
  close(): void;
}

/**
 * A fixed list as a source: for instances that no ZooKeeper knows of, and for tests. Nothing is checked, and
 * nothing ever changes.
 */
export function fixedInstances<P>(name: string, instances: readonly ServiceInstance<P>[]): InstanceSource<P> {
  checkArguments({ name, instances }, { instances: listOf(OBJECT) });
  return {
    name,
    instances: [...instances],
    ready: Promise.resolve(),
    stale: undefined,
    onChange: (listener) => {
      checkArguments({ listener });
      return () => {};
    },
    close: () => {},
  };
}

export interface WatchedInstancesOptions<P> extends ViewContext {
  /** The common name of the instances, for people. */
  readonly name: string;
  /** The znode whose children are the instances; it need not exist. */
  readonly path: string;
  /** Which znodes below it are instances. @default its children */
  readonly follow?: ChildrenViewOptions<unknown>['follow'];
  /** Reads an instance by the name of its znode. Must not throw. */
  readonly decode: (name: string, znode: Znode) => DecodedInstance<P>;
  /**
   * Called once with each znode that cannot be understood, as by {@link UnreadableReports}. Must not throw
   * and must not block.
   */
  readonly onUnreadable?: OnUnreadable | UnreadableReports | undefined;
  /** Called at the end, once. */
  readonly onClose?: (() => void) | undefined;
}

/** The content of an instance's znode. */
interface Read<P> {
  /** The data that it was read from: a write that changes nothing is no news. */
  readonly data?: Buffer;
  readonly instance?: ServiceInstance<P> | undefined;
}

/**
 * The instances that are children of one znode, in the order of the children's names. The znode itself may
 * disappear and return.
 *
 * Without a connection no instance disappears. After a reconnect everything is read again, and `stale` ends
 * when all of it has been read. An instance that may no longer be read is left out after 5 seconds, an
 * unreadable one at once. Not guaranteed: that each change is seen, only the last one; that a silent
 * connection is known to be lost before two thirds of the session's time-out.
 *
 * `ready` resolves once all instances have been read. An instance that the servers refuse delays it by 5
 * seconds. While they refuse the list, it waits.
 */
export class WatchedInstances<P>
  extends FollowedZnodes<Read<P>, readonly ServiceInstance<P>[]>
  implements InstanceSource<P>
{
  readonly name: string;
  readonly #options: WatchedInstancesOptions<P>;
  #instances: readonly ServiceInstance<P>[] = [];

  constructor(options: WatchedInstancesOptions<P>) {
    const { name, decode, onUnreadable, ...followed } = options;
    const reports = UnreadableReports.of(onUnreadable);
    const read = (path: string, znode: Znode): Read<P> => ({
      data: znode.data,
      instance: reports.instanceOf(path, decode(nameAt(path), znode)),
    });
    super({
      ...followed,
      decode: (path, znode, before) => (before?.data?.equals(znode.data) ? before : read(path, znode)),
      unreadable: (path, problem) => {
        reports.report(path, problem);
        return {};
      },
      onValue: (path, value) => value ?? reports.clear(path),
      onChange: () => this.#report(),
    });
    onAbort(this.closed, () => options.onClose?.());
    this.#options = options;
    this.name = name;
    this.view.start();
  }

  /** Empty until {@link ready}. */
  get instances(): readonly ServiceInstance<P>[] {
    return this.#instances;
  }

  /** How long changes may have gone unnoticed, in milliseconds; 0 while every change is seen. */
  get ageMs(): number {
    return this.stale === undefined ? 0 : this.#options.clock.monotonic() - this.stale.since;
  }

  #report() {
    const before = this.#instances;
    const now = this.view.values().flatMap(({ instance }) => instance ?? []);
    if (now.length === before.length && now.every((instance, index) => instance === before[index])) return;
    this.#instances = now;
    this.notify(now);
  }
}

/** Which service a {@link ServiceCache} follows, and where. */
export interface ServiceCacheOptions<P>
  extends Omit<WatchedInstancesOptions<P>, 'path' | 'decode' | 'follow'> {
  /** The parent of the services, as in Curator. */
  readonly basePath: string;
  readonly payload: PayloadCodec<P>;
}

/**
 * The instances of a service in Curator's tree, kept up to date by watches, in the order of their znodes'
 * names: the result of `queryForInstances`. It includes disabled instances; unreadable ones are left out and
 * reported.
 *
 * The last state stays while ZooKeeper is away, and `stale` and `ageMs` show for how long. There is a watch
 * for each instance, and one for the service. Several `DYNAMIC_SEQUENTIAL` instances may have one id: their
 * znodes' names differ.
 */
export class ServiceCache<P = unknown> extends WatchedInstances<P> {
  /** @throws {ConfigError} when the base path or the name cannot be a znode's */
  constructor(given: ServiceCacheOptions<P>) {
    const { basePath, payload, ...options } = Object(given) as typeof given;
    const { zookeeper, clock, name } = options;
    checkArguments({ zookeeper, clock, name, payload }, { payload: PAYLOAD });
    checkBasePath(basePath);
    super({
      ...options,
      path: servicePath(basePath, name),
      decode: (id, { data }) => decodeInstance({ name, id, data }, payload),
    });
  }
}
