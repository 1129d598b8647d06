import { checkArguments, checked, FLAG } from '../../core/base/arguments.js';
import type { Clock } from '../../core/base/clock.js';
import { ConfigError, explain } from '../../core/base/errors.js';
import { concurrentCalls, oneCall } from '../client/call-limits.js';
import { inRounds } from '../client/retry.js';
import {
  CALL_TIMEOUT_MS,
  type CallOptions,
  type CreateMode,
  isFault,
  type MultiOperation,
  type ZnodeStat,
  type ZooKeeper,
} from '../client/zookeeper.js';
import {
  decodeInstance,
  encodeInstance,
  type OnUnreadable,
  UnreadableReports,
  withEnabled,
} from './instance/instance-codec.js';
import { PAYLOAD, type PayloadCodec } from './instance/payload-codec.js';
import type { ServiceInstance, ServiceType } from './instance/service-instance.js';
import { isReadAlike, refusalOf } from './mixed-payloads.js';
import { checkBasePath, DEFAULT_BASE_PATH, instancePath, servicePath } from './service-path.js';
import { Kind } from './shortened.js';

/** The deadline of a query, or of a single write, as a whole, and a signal that gives it up. */
export type ServiceCall = Pick<CallOptions, 'timeoutMs' | 'signal'>;

/** Options of {@link ServiceDirectory}. */
export interface ServiceDirectoryOptions<P> {
  readonly zookeeper: ZooKeeper;
  readonly clock: Clock;
  /** The parent of all services, within the chroot. @default "/services" */
  readonly basePath?: string | undefined;
  readonly payload: PayloadCodec<P>;
  /**
   * Receives each instance that is left out once, and again when its problem changes; 1,000 at most. Must not
   * throw and must not block.
   */
  readonly onUnreadable?: OnUnreadable | UnreadableReports | undefined;
}

/** An instance, and what the servers say of its znode. */
export interface InstanceWithStat<P> {
  readonly instance: ServiceInstance<P>;
  /**
   * `modifiedAt` is when it was changed last, by their clock. While a znode with an `owner` exists, they have
   * not ended that session; one without an owner goes with no session.
   */
  readonly stat: ZnodeStat;
}

/**
 * Queries of Curator's tree, and single writes to it. It remembers only its reports.
 *
 * Every method rejects with a `ZooKeeperError` when ZooKeeper does not answer in time. An unreadable
 * instance, or one that this session may not read, is left out and reported.
 */
export class ServiceDirectory<P> {
  /** The parent of all services. */
  readonly basePath: string;
  readonly #reports: UnreadableReports;

  /** @throws {ConfigError} when the base path is not an absolute path */
  constructor(private readonly options: ServiceDirectoryOptions<P>) {
    const {
      zookeeper,
      clock,
      payload,
      basePath = DEFAULT_BASE_PATH,
      onUnreadable,
    } = Object(options) as typeof options;
    checkArguments({ zookeeper, clock, payload }, { payload: PAYLOAD });
    checkBasePath(basePath);
    this.basePath = basePath;
    this.#reports = UnreadableReports.of(onUnreadable);
  }

  /**
   * The names of all services, in the order of their characters. One whose last instance has left may be
   * among them for a while.
   */
  async names(call: ServiceCall = {}): Promise<readonly string[]> {
    checked(call);
    const names = await this.options.zookeeper.children(this.basePath, call);
    return [...(names ?? [])].sort();
  }

  /**
   * The instances of a service, disabled ones included, in the order of their znodes' names; empty if the
   * service does not exist. Each one is read separately. Not guaranteed: that all of them existed at one
   * moment.
   *
   * @param call `timeoutMs` is that of the whole query. @default 5000
   * @throws {ConfigError} when the name cannot be a znode's
   * @throws {ZooKeeperError} among others `no-auth` where this session may not list the service's instances
   */
  async instances(name: string, call: ServiceCall = {}): Promise<readonly ServiceInstance<P>[]> {
    return (await this.instancesWithStat(name, call)).map(({ instance }) => instance);
  }

  /** The same, with what the servers say of each instance's znode. @throws as {@link instances} */
  async instancesWithStat(name: string, call: ServiceCall = {}): Promise<readonly InstanceWithStat<P>[]> {
    const remaining = this.#deadline(call);
    const ids = await this.options.zookeeper.children(servicePath(this.basePath, name), remaining());
    const found = await concurrentCalls([...(ids ?? [])].sort(), (id) => this.#read(name, id, remaining()));
    return found.filter((each) => each !== undefined);
  }

  /**
   * One instance; undefined when there is none, or it cannot be understood.
   *
   * @param id the znode's name: of a `DYNAMIC_SEQUENTIAL` instance with the servers' number
   * @throws {ConfigError} when the name or the id cannot be a znode's
   */
  async instance(name: string, id: string, call: ServiceCall = {}): Promise<ServiceInstance<P> | undefined> {
    return (await this.#read(name, id, call))?.instance;
  }

  async #read(name: string, id: string, call: ServiceCall): Promise<InstanceWithStat<P> | undefined> {
    checked(call);
    const { zookeeper, payload } = this.options;
    const path = instancePath(this.basePath, name, id);
    try {
      const znode = await zookeeper.read(path, call);
      const decoded = znode && decodeInstance<P>({ name, id, data: znode.data }, payload);
      const instance = this.#reports.instanceOf(path, decoded);
      return znode && instance && { instance, stat: znode.stat };
    } catch (error) {
      if (!isFault(error, 'no-auth')) throw error;
      this.#reports.report(path, `cannot be read: ${explain(error)}`);
      return undefined;
    }
  }

  /**
   * Creates an instance's znode, in place of any existing one, in one transaction. A `DYNAMIC` one ends with
   * this session, and is not restored like a registration. Each write of a `DYNAMIC_SEQUENTIAL` one creates
   * another.
   *
   * @returns the path of its znode
   * @throws {ConfigError} when not every reader understands the instance; nothing has been written then
   * @throws {ZooKeeperError} with the outcome `unknown` it may have been written; `mixed-payloads` as
   * `register` of a `ServiceDiscovery`
   */
  async write(instance: ServiceInstance<P>, call: ServiceCall = {}): Promise<string> {
    const { zookeeper, payload } = this.options;
    const remaining = this.#deadline(call);
    const data = encodeInstance(instance, payload);
    const path = instancePath(this.basePath, instance.name, instance.id);
    const mode = createModeOf(instance.serviceType);
    const { sessionId } = await zookeeper.whenConnected(remaining());
    return inRounds(path, async () => {
      const bound = { ...remaining(), sessionId };
      const present = mode === 'ephemeral-sequential' ? undefined : await zookeeper.read(path, bound);
      if (present === undefined || !isReadAlike(present.data, data)) {
        const refusal = await refusalOf(zookeeper, { path, data }, bound);
        if (refusal) throw refusal;
      }
      if (present === undefined) return zookeeper.createWithParents(path, data, mode, bound);
      await zookeeper.multi(replacing(path, present.stat.version, data, mode), bound);
      return path;
    });
  }

  /**
   * Removes an instance's znode, whichever process registered it. A registration that is kept up creates it
   * again.
   *
   * @param id the znode's name: of a `DYNAMIC_SEQUENTIAL` instance with the servers' number
   * @returns false when there was none
   * @throws {ConfigError} when the name or the id cannot be a znode's
   */
  async remove(name: string, id: string, call: ServiceCall = {}): Promise<boolean> {
    checked(call);
    return this.options.zookeeper.remove(instancePath(this.basePath, name, id), undefined, call);
  }

  /**
   * Enables or disables an instance of any process. The rest of its data, its session and its type stay. The
   * change is kept until its registrant registers or updates it again.
   *
   * @param id the znode's name: of a `DYNAMIC_SEQUENTIAL` instance with the servers' number
   * @returns false when there is none
   * @throws {ConfigError} when the name or the id cannot be a znode's, or the znode is no instance
   * @throws {ZooKeeperError} with the outcome `unknown` it may have been written
   */
  async setEnabled(name: string, id: string, enabled: boolean, call: ServiceCall = {}): Promise<boolean> {
    checkArguments({ enabled }, { enabled: FLAG });
    const { zookeeper, payload } = this.options;
    const remaining = this.#deadline(call);
    const path = instancePath(this.basePath, name, id);
    return inRounds(path, async () => {
      const znode = await zookeeper.read(path, remaining());
      if (znode === undefined) return false;
      const decoded = decodeInstance({ name, id, data: znode.data }, payload);
      if (decoded.status === 'unreadable')
        throw new ConfigError(path, new Kind(`a znode that ${decoded.problem}`), 'an instance');
      if (decoded.instance.enabled === enabled) return true;
      const data = withEnabled(znode.data.toString('utf8'), enabled);
      await zookeeper.setData(path, data, znode.stat.version, remaining());
      return true;
    });
  }

  #deadline(call: ServiceCall) {
    return oneCall(this.options.clock, checked(call), CALL_TIMEOUT_MS);
  }
}

/** The mode of the znode of an instance of a type. */
export function createModeOf(type: ServiceType): CreateMode {
  if (type === 'DYNAMIC') return 'ephemeral';
  return type === 'DYNAMIC_SEQUENTIAL' ? 'ephemeral-sequential' : 'persistent';
}

/**
 * Replaces the znode at a path by a new one, in one transaction, so that no reader sees none. Changing its
 * data would keep its mode and its session. The new one never has the version of the old one: a write or
 * removal by the old version does not hit the new one.
 *
 * @param version of the data that may be replaced
 */
export function replacing(path: string, version: number, data: string, mode: CreateMode): MultiOperation[] {
  return [
    { type: 'remove', path, version },
    { type: 'create', path, data, mode },
    ...(replacementVersion(version) === 0 ? [] : [{ type: 'set' as const, path, data, version: 0 }]),
  ];
}

/** The version of the data of a znode that replaced another. */
export function replacementVersion(version: number): number {
  return version === 0 ? 1 : 0;
}
