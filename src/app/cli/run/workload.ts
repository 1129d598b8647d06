import { orAborted } from '../../../core/base/abort.js';
import { taskProtector } from '../../../core/base/host/task-protection.js';
import { storeKindOf } from '../../../core/store/stores.js';
import { type HeldNode, holdNode } from '../../../node/runtime/hold-node.js';
import type { NodeMonitor } from '../../../node/runtime/node-monitor.js';
import { installedTracer, type OpenTelemetryTracer } from '../../../node/runtime/open-telemetry-tracer.js';
import { mayHaveSdk } from '../../../node/runtime/preloaded-sdk.js';
import type { ZooKeeper } from '../../../zookeeper/client/zookeeper.js';
import type { RoutingEntries } from '../../discovery/routing-entries.js';
import type { Io } from '../../kit/io.js';
import { leaseLog, logSource, taskNamesOf, warnIfPrivate } from '../../kit/log/lease-log.js';
import type { Logger } from '../../kit/log/logger.js';
import type { SignalRelay } from '../../kit/terminal/signal-relay.js';
import { withTimeout } from '../../kit/terminal/with-timeout.js';
import { ownHoldOptions } from '../../products.js';
import type { Settings } from '../../settings/settings.js';
import { announcingProblem } from '../../settings/zookeeper-settings.js';
import { onRetirement } from '../../supervisor/held.js';
import type { WorkEnd } from '../../supervisor/supervisor.js';
import type { NodeHttp } from '../node-http/node-http.js';

/** What a workload gets. */
export interface WorkloadNode extends Omit<HeldNode, 'discovery' | 'end'> {
  /** Names the task in every line. */
  readonly log: Logger;
  /**
   * What sends work here; undefined where that is not announced. Begun, and in the end withdrawn, by the
   * workload; withdrawn in any case afterwards.
   */
  readonly routing: RoutingEntries | undefined;
  /** The session with ZooKeeper, which ends with the node id; undefined where there is none. */
  readonly zookeeper: ZooKeeper | undefined;
  /** The URL by which programs on this host reach the HTTP server; undefined where there is none. */
  readonly url: string | undefined;
  /** What programs do that ask over HTTP: it has to know whether any of it may be under way. */
  readonly served: NodeHttp['work'];
}

/** What a command holds a node id for. */
export interface Workload {
  /**
   * The lease has been renewed: called before all other listeners, on the engine's own time. Must neither
   * throw nor block.
   */
  renewed?(deadline: number): void;
  /** Makes ready what the work needs. Where it rejects, the node id is given back, and nothing is run. */
  prepare?(node: WorkloadNode): Promise<void>;
  /**
   * Does the work. The node id is given back when this has settled; where it rejects, work is taken to be
   * left.
   */
  run(node: WorkloadNode): Promise<WorkEnd>;
}

export interface WorkloadOptions {
  readonly settings: Settings;
  readonly io: Io;
  readonly signals: SignalRelay;
  readonly log: Logger;
  /** What answers over HTTP, from before a node id is acquired; undefined for nothing. */
  readonly http?:
    | { readonly monitor: NodeMonitor; readonly open: (log: Logger) => Promise<NodeHttp> }
    | undefined;
  /** Whether other processes work with the node id. @default false */
  readonly heldForOthers?: boolean;
}

/** How long the export of the last spans may hold up the exit, in milliseconds. */
const FLUSH_TIMEOUT_MS = 500;

/**
 * Runs a workload with a node id: listens where there is HTTP, holds a node, runs the workload, ends the
 * node. Resolves to the workload's exit code.
 *
 * @throws whatever kept it from a node id: {ConfigError}, {StoreError}, `Interrupted`, …
 */
export async function runWorkload(options: WorkloadOptions, workload: Workload): Promise<number> {
  const { settings, io, signals, heldForOthers = false } = options;
  const { env, execArgv, clock, processId } = io;
  let { log } = options;
  const { nodeId, provider, store, zookeeper } = settings;
  const isLeased = nodeId === undefined && provider === 'store';
  const isLean = isLeased && storeKindOf(store)?.sharedBy === undefined;
  // A flag of V8 is set while there is one thread.
  if (isLean && options.http) io.keepMemoryLean();
  // First of all: answers say why there is no node id yet, and a port that is taken costs none.
  const http = await options.http?.open(log);
  let tracer: OpenTelemetryTracer | undefined;
  try {
    const signal = signals.interrupted;
    const names = await taskNamesOf(settings, io, log, signal);
    log = log.child({ taskId: names.taskId });
    const own = await ownHoldOptions(settings, log, heldForOthers);
    // The first line: a slip in it makes another cluster.
    logSource(settings, log);
    http?.announce(log);
    if (
      parseInt(process.versions.node, 10) < 22 &&
      env.AWS_SDK_JS_NODE_VERSION_SUPPORT_WARNING_DISABLED !== 'true'
    )
      log.warn(
        `Node.js ${process.versions.node} is supported until the AWS SDK drops it in January 2027: use 22 or later`,
      );
    if (processId === 1)
      log.warn(
        'node as process 1 collects no orphaned processes: start the nodelease script by its own name',
      );
    const problem = zookeeper && announcingProblem(zookeeper);
    if (problem !== undefined) log.warn(`discovery: ${problem}`);
    if (isLeased) warnIfPrivate(store, log, 'no other task will see this lease');
    if (nodeId === undefined && mayHaveSdk(execArgv, env.NODE_OPTIONS)) tracer = await installedTracer(clock);
    const node = await holdNode({
      ...settings,
      ...names,
      clock,
      random: io.random,
      signal,
      tracer,
      monitor: options.http?.monitor,
      announcesService: zookeeper?.check === undefined,
      ...own,
      onRenewed: (deadline) => workload.renewed?.(deadline),
      onLeaseEvent: leaseLog(log),
      onDiscoveryEvent: zookeeper && (await import('../../kit/log/discovery-log.js')).discoveryLog(log),
      limited: (what, limitMs, step) => withTimeout({ limitMs, clock, log, what }, step),
    });
    return await runWith(node, workload, { ...options, log }, { http, isLean });
  } catch (error) {
    options.http?.monitor.failed(error);
    throw error;
  } finally {
    // Until here it says that the work is being ended.
    await http?.close();
    // The process exits next, whatever an SDK still keeps for its next batch.
    if (tracer)
      await withTimeout(
        { limitMs: FLUSH_TIMEOUT_MS, clock, log, what: 'exporting the spans' },
        tracer.flush(),
      );
  }
}

/**
 * Runs the workload while the node is held, and ends the node; its id is released only where the work has
 * ended.
 */
async function runWith(
  node: HeldNode,
  workload: Workload,
  options: WorkloadOptions,
  { http: server, isLean }: { readonly http: NodeHttp | undefined; readonly isLean: boolean },
): Promise<number> {
  const { settings, io, log, http, signals } = options;
  const { url, work: served } = server ?? {};
  const { discovery, end: endNode, ...own } = node;
  const { lease } = own;
  let routing: RoutingEntries | undefined;
  let forgetRetirement = () => {};
  const unprotect = settings.ecsProtect === 'held' ? taskProtector({ ...io, log })() : undefined;
  // False while work that relies on the node id may be left; undefined before this process has begun any.
  let workEnded: boolean | undefined;
  try {
    signals.interrupted.throwIfAborted();
    const { check, service, endpoints } = settings.zookeeper ?? {};
    if (discovery && (service !== undefined || endpoints !== undefined)) {
      const { RoutingEntries } = await import('../../discovery/routing-entries.js');
      routing = new RoutingEntries({ discovery, check, clock: io.clock, log });
    }
    // No new work for a node id that is to go; its znode says who holds it, for as long as it is held.
    forgetRetirement = onRetirement(lease, () => void routing?.withdraw());
    const held = { ...own, log, routing, zookeeper: discovery?.zookeeper, url, served };
    if (served) await orAborted(served.takePart(lease, log, settings.zookeeper), signals.interrupted);
    await workload.prepare?.(held);
    workEnded = false;
    const ended = workload.run(held);
    // Once all is loaded: V8 refuses Node's own compiled modules when a flag has changed.
    if (isLean && !http) io.keepMemoryLean();
    const end = await ended;
    workEnded = end.workEnded;
    return end.exitCode;
  } finally {
    forgetRetirement();
    http?.monitor.stopping();
    // Whatever has happened: the command is not asked any more.
    void routing?.withdraw();
    // Programs may have begun without it.
    workEnded ??= (await served?.leave(lease, lease.signal)) ?? true;
    if (!workEnded) served?.ended('expires');
    // A lost lease has nothing left to release.
    await Promise.all([unprotect?.(), endNode({ workEnded, release: workEnded && lease.isValid() })]);
  }
}
