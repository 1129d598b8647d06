import {
  checkArguments,
  checked,
  FUNCTION,
  kind,
  maybe,
  NAME,
  OBJECT,
  oneOf,
  TEXT,
} from '../../core/base/arguments.js';
import { ConfigError, explain } from '../../core/base/errors.js';
import { hostName } from '../../core/base/host/facts.js';
import { type TaskNames, taskNames } from '../../core/base/host/task-id.js';
import { systemClock, systemRandom } from '../../core/base/system.js';
import { checkRoot, type DataDirOptions } from '../../core/data-dir/data-dir-options.js';
import { DATA_DIR_SETTINGS, WHY_STICKY } from '../../core/data-dir/data-dir-settings.js';
import { checkWanted } from '../../core/lease/model/cluster-config.js';
import { type Lease, type LeaseListener, waitingText } from '../../core/lease/model/lease.js';
import type { LeaseStore } from '../../core/store/lease-store.js';
import { DEFAULT_STORE, defaultStore } from '../../core/store/store-settings.js';
import type { StoreAccess } from '../../core/store/stores.js';
import { parseAuth, parseConnectString } from '../../zookeeper/client/connect-string.js';
import type { ZooKeeperTls } from '../../zookeeper/client/connection/tls.js';
import { type Announcement, checkAnnouncement } from '../../zookeeper/discovery/announcement.js';
import type { Discovery, DiscoveryEvent } from '../../zookeeper/discovery/discovery.js';
import { checkOptions } from './check-options.js';
import { holdNode } from './hold-node.js';
import { type LossPolicy, manage } from './managed-lease.js';
import { NodeMonitor } from './node-monitor.js';
import { installedTracer } from './open-telemetry-tracer.js';

/** How to acquire a node id. */
export interface AcquireOptions extends StoreAccess {
  /**
   * The URL of a store, such as `s3://bucket/prefix` or `file:DIR` (`docs/guides/stores.md` has all), or
   * your own store. Required in a container.
   * @default 'file:.nodelease'
   */
  readonly store?: string | LeaseStore | undefined;
  /**
   * `existing`: `acquire` fails if the store has no cluster, for example after a typo in its URL, and creates
   * none.
   * @default 'any'
   */
  readonly cluster?: 'any' | 'existing' | undefined;
  /**
   * Number of node ids of a new cluster, 1 … 65528; an existing cluster keeps its own.
   * @default 16
   */
  readonly nodes?: number | undefined;
  /**
   * How long a lease is valid without renewal, in milliseconds, 1000 … 86400000; for a new cluster.
   * @default 15000
   */
  readonly durationMs?: number | undefined;
  /**
   * How much longer other tasks wait before they take an expired lease, in milliseconds, a thousandth of the
   * duration … 3600000; for a new cluster.
   * @default 1000, or more for a long duration
   */
  readonly graceMs?: number | undefined;
  /**
   * Names this run of this process: 1 … 128 printable ASCII characters without spaces.
   * @default the ECS task's id, else host name and a random part
   */
  readonly taskId?: string | undefined;
  /**
   * The name of the cluster, 1 … 255 letters, digits and `._-`: one without a name takes it, one of another name
   * refuses this task.
   * @default the ECS service on EC2, where the metadata endpoint has it, else none
   */
  readonly clusterName?: string | undefined;
  /** How long to wait for a free id, in milliseconds; 0 for not at all. @default no limit */
  readonly acquireTimeoutMs?: number | undefined;
  /**
   * The first pause between two listings while no id is free, in milliseconds, 100 … 86400000, on a store
   * that reports no changes. It grows to a third of the lease's duration: a released id may go unnoticed for
   * that long. A listing is a request for each 1,000 objects.
   * @default 1200, or what your own store suggests
   */
  readonly waitPollMs?: number | undefined;
  /**
   * How often the cluster's settings are read, in milliseconds, 1 … 3600000, rounded to the nearest renewal.
   * The lease learns with this delay that wider unique ids are requested, or that its node id is being
   * retired (`retiring`). Each read is a request. @default at each renewal
   */
  readonly settingsIntervalMs?: number | undefined;
  /**
   * Names this instance over its restarts, such as a volume id: 1 … 256 characters. Of the free node ids it
   * gets the one that it held last. `file` is a key in the root of the data directory. It is a preference: two
   * tasks with one key get two node ids.
   * @default none
   */
  readonly sticky?: string | undefined;
  /** The node id that is tried before all others where it is free. @default none */
  readonly preferId?: number | undefined;
  /**
   * How long to wait for the own former node id where its lease has not been released, in milliseconds,
   * 0 … 86400000. It needs `sticky`. @default 0
   */
  readonly stickyWaitMs?: number | undefined;
  /**
   * Where the lease is renewed: `inline` in this thread, `worker` in a separate thread, which continues when
   * this one blocks. `worker` needs a store given by its URL, other than `memory:`. @default 'inline'
   */
  readonly keeper?: 'inline' | 'worker' | undefined;
  /**
   * What happens when the lease is lost. `exit`: the handle's `signal` aborts, and the process exits with
   * code 76: at once if another task may hold the id, otherwise shortly before the deadline. `signal`: only
   * the handle's `signal` aborts, and the caller must stop in time. A function is called with the error
   * instead. @default 'exit'
   */
  readonly onLost?: LossPolicy | undefined;
  /**
   * Mirrors the node id into ZooKeeper's discovery tree: a connect string (`zk1:2181,zk2:2181/app`), or an
   * object.
   * @default no discovery
   */
  readonly zookeeper?: string | AcquireZooKeeperOptions | undefined;
  /**
   * The source of the node id: a lease in the store, or ZooKeeper alone, as long as the session with it
   * exists. `zookeeper` needs the option of that name, and does not use the store. @default 'store'
   */
  readonly provider?: 'store' | 'zookeeper' | undefined;
  /**
   * A directory that follows the node id, `ROOT/node-<id>/v<version>`: `lease.dataDir`, complete when
   * `acquire` resolves. A loss of the lease before that is an error of `acquire`, whatever `onLost` says.
   */
  readonly dataDir?: DataDirOptions | undefined;
  /**
   * Receives the events of the lease.
   * @default two of them are lines on standard error: that it waits for a free id, and the loss before the exit
   */
  readonly onEvent?: LeaseListener | undefined;
  /**
   * Monitors this node id from now on, for health checks and metrics. Create one for every `acquire`, and
   * pass it to `nodeHandler` and `NodeMetrics` before. It is `stopping` as soon as `release()` is called.
   * Call that, or its method `stopping()`, when no more work should come.
   */
  readonly monitor?: NodeMonitor | undefined;
  /** Gives up waiting. Has no effect once the lease is held. */
  readonly signal?: AbortSignal | undefined;
}

/** How to reach ZooKeeper, and what to announce there. */
export interface AcquireZooKeeperOptions extends Announcement {
  /** Servers and chroot: `zk1:2181,zk2:2181/app`. */
  readonly connect: string;
  /**
   * Credentials: `digest:user:password`. Only that user can then change the node's own znodes.
   * @default none, and znodes open to all
   */
  readonly auth?: string | undefined;
  /**
   * Whether and how the connection is encrypted: `true` trusts the CAs that Node trusts.
   * @default false
   */
  readonly tls?: boolean | ZooKeeperTls | undefined;
  /**
   * How long a session outlives its connection, in milliseconds, 1000 … 600000; the servers may grant
   * another.
   * @default 10000
   */
  readonly sessionTimeoutMs?: number | undefined;
  /**
   * Whether `acquire` fails if ZooKeeper cannot be reached, instead of continuing without it until it can.
   * @default false
   */
  readonly required?: boolean | undefined;
  /**
   * How long a node that took over an expired lease waits until all others know of it, in milliseconds.
   * @default 60000
   */
  readonly readyTimeoutMs?: number | undefined;
  /** Receives the events of the announcement. If it throws, the error becomes an uncaught one. */
  readonly onEvent?: ((event: DiscoveryEvent) => void) | undefined;
}

/** A lease with its discovery and data directory. */
export interface ManagedLease extends Lease {
  /** The node in the discovery tree; undefined without ZooKeeper. */
  readonly discovery: Discovery | undefined;
  /** The absolute path of the data directory of this tenure; undefined without the option of that name. */
  readonly dataDir: string | undefined;
  /** Whether that directory was made from an older version; otherwise it was empty. */
  readonly dataRestored: boolean | undefined;
}

/**
 * Acquires a node id and keeps it until it is released or lost.
 *
 * ```ts
 * await using lease = await acquire({ store: 's3://bucket/my-service', nodes: 20 });
 * console.log(lease.id, lease.version);
 * ```
 *
 * An OpenTelemetry SDK that the process has registered gets the spans `nodelease.acquire`, `nodelease.renew`
 * and `nodelease.release`.
 *
 * Not guaranteed: with `onLost: 'signal'`, that code which checks neither `signal` nor `isValid()` stops in
 * time.
 *
 * @throws {ConfigError} when an option is out of range
 * @throws {StoreUnusableError} when the store cannot be reached, denies access, or ignores conditions
 * @throws {ZooKeeperError} when ZooKeeper is required, or gives out the node ids, and cannot be reached
 * @throws {AcquireTimeoutError} when no id became free in time
 * @throws {DataDirError} when the data directory cannot be prepared
 * @throws {LeaseLostError} when the lease is lost while it is prepared
 * @throws `signal.reason` when `signal` aborts first
 */
export async function acquire(given: AcquireOptions = {}): Promise<ManagedLease> {
  checked(given, {}, 'options', []);
  // Their owner may change them while this waits.
  const options = { ...given };
  checkMonitor(options.monitor);
  try {
    checkAcquireOptions(given);
    if (options.dataDir) await checkRoot(options.dataDir.root, 'dataDir.root', 'write');
    const { store = DEFAULT_STORE, onLost = 'exit', monitor } = options;
    const zookeeper =
      typeof options.zookeeper === 'string' ? { connect: options.zookeeper } : options.zookeeper;
    const names = await ownNames(options);
    if (zookeeper !== undefined) checkAnnounced(zookeeper, names.taskId);
    const tracer = await installedTracer(systemClock);
    const node = await holdNode({
      ...options,
      store,
      ...names,
      zookeeper,
      killOnLoss: onLost === 'exit',
      clock: systemClock,
      random: systemRandom,
      tracer,
      onLeaseEvent: options.onEvent ?? spoken(onLost),
      onDiscoveryEvent: zookeeper?.onEvent,
    });
    return manage(node, onLost, () => monitor?.stopping('the lease is being released'));
  } catch (error) {
    options.monitor?.failed(error);
    throw error;
  }
}

/** Reports on standard error, where no listener does, that it waits and why the process is about to end. */
function spoken(onLost: LossPolicy): LeaseListener {
  let said: string | undefined;
  return (event) => {
    let text = said;
    if (event.type === 'waiting') text = waitingText(event);
    else if (event.type === 'lost' && onLost === 'exit') text = explain(event.error);
    if (text !== said) console.error(`nodelease: ${text}`);
    said = text;
  };
}

function checkMonitor(monitor: NodeMonitor | undefined) {
  if (monitor === undefined) return;
  if (!(monitor instanceof NodeMonitor)) throw new ConfigError('monitor', monitor, 'a NodeMonitor');
  const { state } = monitor.health();
  // A monitor reports one tenure: its first end is final.
  if (state !== 'acquiring')
    throw new ConfigError('monitor', `one that is ${state}`, 'a separate NodeMonitor for every acquire()');
}

/** Options that are not in the settings' table. */
const OTHER_OPTIONS = [
  'keeper',
  'onLost',
  'zookeeper',
  'dataDir',
  'onEvent',
  'monitor',
  'signal',
] satisfies (keyof AcquireOptions)[];
const SERVERS = 'servers such as zk1:2181,zk2:2181/app';
const KINDS = {
  keeper: maybe(oneOf('inline', 'worker')),
  onLost: maybe(
    kind(
      "'exit', 'signal' or a function",
      (value) => value === 'exit' || value === 'signal' || FUNCTION.is(value),
    ),
  ),
  dataDir: maybe(
    kind('an object with the path of a directory as root', (value) => NAME.is(Object(value).root)),
  ),
  zookeeper: maybe(
    kind(`${SERVERS}, or an object with them as connect`, (value) => TEXT.is(value) || OBJECT.is(value)),
  ),
  'zookeeper.connect': kind(SERVERS, TEXT.is),
};
const OTHER_ZOOKEEPER_OPTIONS = ['sslPort', 'onEvent'] satisfies (keyof AcquireZooKeeperOptions)[];

/**
 * Checks what the compiler checks in TypeScript: a misspelt `onLost` must not pass for the default, or the
 * default for it.
 */
function checkAcquireOptions(options: AcquireOptions) {
  checkWanted(options);
  checkOptions(options, '', OTHER_OPTIONS);
  const { keeper, onLost, provider = 'store', store, zookeeper, dataDir } = options;
  checkArguments({ keeper, onLost, dataDir, zookeeper }, KINDS);
  if (dataDir !== undefined) checkOptions(dataDir, 'dataDir.', ['onEvent'], DATA_DIR_SETTINGS);
  if (dataDir?.local && (options.sticky === undefined || provider === 'zookeeper'))
    throw new ConfigError('dataDir.local', true, `the option sticky with it (${WHY_STICKY})`);
  if (provider === 'zookeeper') {
    if (zookeeper === undefined) throw new ConfigError('provider', provider, 'the option zookeeper, too');
    if (store !== undefined)
      throw new ConfigError('provider', provider, 'no store, since the node ids come from ZooKeeper alone');
    if (keeper === 'worker') throw new ConfigError('keeper', keeper, "'inline' with provider 'zookeeper'");
  }
  if (typeof zookeeper === 'string') parseConnectString(zookeeper, 'zookeeper');
  else if (zookeeper !== undefined) checkZooKeeperOptions(zookeeper);
  if (store === undefined && provider === 'store') defaultStore();
}

function checkZooKeeperOptions(zookeeper: AcquireZooKeeperOptions) {
  checkOptions(zookeeper, 'zookeeper.', OTHER_ZOOKEEPER_OPTIONS);
  const { connect, auth } = zookeeper;
  checkArguments({ 'zookeeper.connect': connect }, KINDS);
  parseConnectString(connect, 'zookeeper.connect');
  if (auth !== undefined) parseAuth(auth, 'zookeeper.auth');
}

/** Checks the announcement. Its errors name the options. */
function checkAnnounced(zookeeper: AcquireZooKeeperOptions, taskId: string) {
  try {
    checkAnnouncement(zookeeper, taskId);
  } catch (error) {
    if (!(error instanceof ConfigError) || error.setting === 'taskId') throw error;
    throw new ConfigError(`zookeeper.${error.setting}`, error.value, error.expected);
  }
}

/** The names of this process. */
export function ownNames({ taskId, clusterName, signal }: Omit<AcquireOptions, 'store'>): Promise<TaskNames> {
  const warn = (message: string) => process.emitWarning(message, { code: 'NODELEASE_TASK_ID' });
  return taskNames({
    taskId,
    clusterName,
    env: process.env,
    hostname: hostName(),
    clock: systemClock,
    random: systemRandom,
    warn,
    signal,
  });
}
