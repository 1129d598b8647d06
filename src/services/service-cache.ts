import type { Clock } from '../base/clock.js';
import type { ZooKeeper } from '../zookeeper/zookeeper.js';
import { decodeInstance } from './instance-codec.js';
import type { PayloadCodec } from './payload-codec.js';
import { checkBasePath, servicePath } from './service-path.js';
import type { OnUnreadable, UnreadableReports } from './unreadable-reports.js';
import { WatchedInstances } from './watched-instances.js';

/** Which service a {@link ServiceCache} follows, and where. */
export interface ServiceCacheOptions<P> {
  readonly zookeeper: Pick<ZooKeeper, 'state' | 'onState' | 'watchChildren' | 'watchData' | 'children'>;
  readonly clock: Clock;
  /** The znode below which the services stand, as in Curator. */
  readonly basePath: string;
  /** The service. */
  readonly name: string;
  readonly payload: PayloadCodec<P>;
  /**
   * Told once of each znode below the service that cannot be understood, with the rest of the sentence "<path> …", and of 1,000 at a time at
   * the most. Must not throw and must not block.
   */
  readonly onUnreadable?: OnUnreadable | UnreadableReports | undefined;
  /** Called at the end, once. */
  readonly onClose?: (() => void) | undefined;
}

/**
 * The instances of a service in Curator's tree, kept up to date by watches, and in the order of their znodes' names: what
 * `queryForInstances` would tell, without asking for it. Disabled ones are among them; unreadable ones are left out and reported.
 *
 * What was seen last stays while ZooKeeper is away, and `stale` and `ageMs` say for how long that has been. There is a watch for each
 * instance, and one for the service. Several `DYNAMIC_SEQUENTIAL` instances may have one id: they are told apart by their znodes' names.
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
