import { announcingProblem, type Settings, type ZooKeeperSettings } from '../config.js';
import type { DiscoveredLease, Discoverer } from '../discovery/discoverer.js';
import type { TenureOrigin } from '../discovery/discovery.js';
import { explain } from '../errors.js';
import type { Lease, LeaseListener } from '../lease/lease.js';
import type { LeaseStore } from '../store/lease-store.js';
import { defaultTaskId } from '../task-id.js';
import { ChildStartError, startChild } from './child.js';
import { reportCommandFailure } from './command-failure.js';
import { lookUpCommand } from './command-lookup.js';
import { ExitCode } from './exit-codes.js';
import { canGuard, type Guard, SHELL, startGuard } from './guard.js';
import type { Io } from './io.js';
import { leaseLog } from './lease-log.js';
import { createLogger, type Logger } from './logger.js';
import type { RoutingEntries } from './routing-entries.js';
import { SignalRelay } from './signal-relay.js';
import { type SuperviseResult, supervise } from './supervisor.js';

/** The command that `run` starts: its file, and its arguments. */
export type Command = readonly [file: string, ...args: string[]];

/** How long one request to the store may take, in milliseconds, at the most. */
const REQUEST_TIMEOUT_MS = 5_000;
/** How long the release may hold up the exit, in milliseconds. */
const RELEASE_LIMIT_MS = 5_000;
/** How long taking the node out of the discovery tree may hold up the release, in milliseconds. */
const WITHDRAW_LIMIT_MS = 1_500;
/** How long the closing of the store may hold up the exit, in milliseconds. */
const CLOSE_LIMIT_MS = 500;

/**
 * `nodelease run -- command`: acquires a node id, runs the command with it, and releases it when the command has ended.
 * Resolves to the exit code; whatever goes wrong has been reported on standard error by then.
 *
 * @throws {ConfigError} when a setting turns out to be unusable, for the caller to report
 */
export async function runCommand(command: Command, settings: Settings, io: Io): Promise<number> {
  const lookup = lookUpCommand(command[0], io.env.PATH);
  if (lookup !== 'executable') {
    io.stderr(`nodelease: ${command[0]}: ${lookup === 'not-found' ? 'command not found' : 'not executable'}\n`);
    return lookup === 'not-found' ? ExitCode.notFound : ExitCode.notExecutable;
  }
  const signals = new SignalRelay(io.signals);
  const log = await createLogger({ level: settings.logLevel, format: io.logFormat });
  io.onWarning((warning) => log.warn(explain(warning)));
  try {
    return await new Run(command, settings, io, signals, log).execute();
  } catch (error) {
    return reportCommandFailure(error, log, ' before the command was started');
  } finally {
    signals.close();
  }
}

/** One run, from acquiring to releasing. */
class Run {
  #guard: Guard | undefined;
  #discoverer: Discoverer | undefined;
  #origin: TenureOrigin = 'static';
  /** False while work that relies on the node id may be left. */
  #workEnded = true;
  #log: Logger;

  constructor(
    private readonly command: Command,
    private readonly settings: Settings,
    private readonly io: Io,
    private readonly signals: SignalRelay,
    log: Logger,
  ) {
    this.#log = log;
  }

  async execute(): Promise<number> {
    const { settings, io, signals } = this;
    const signal = signals.interrupted;
    if (io.processId === 1) this.#log.warn('node as process 1 collects no orphaned processes: start the nodelease script by its own name');
    const taskId = settings.taskId ?? (await defaultTaskId({ ...io, signal, warn: (message) => this.#log.warn(message) }));
    this.#log = this.#log.child({ taskId });
    if (settings.zookeeper === undefined) return this.#lease(taskId);
    this.#discoverer = await this.#openDiscoverer(settings.zookeeper);
    try {
      await this.#discoverer.connected(signal);
      return await this.#lease(taskId);
    } finally {
      // A node id that lives by the session is free as soon as that ends: while work is left, it has to run out by itself.
      if (settings.provider === 'store' || this.#workEnded) await this.#discoverer.close();
    }
  }

  /** Begins to connect to ZooKeeper, while the node id is being acquired. */
  async #openDiscoverer(settings: ZooKeeperSettings): Promise<Discoverer> {
    const { service, address, port, payload, payloadType, basePath, endpoints, check: _, ...session } = settings;
    const announcement = { service, address, port, payload, payloadType, basePath, endpoints };
    const { clock, random } = this.io;
    const problem = announcingProblem(settings);
    if (problem !== undefined) this.#log.warn(`discovery: ${problem}`);
    const { Discoverer } = await import('../discovery/discoverer.js');
    const { discoveryLog } = await import('./discovery-log.js');
    return new Discoverer({ ...session, announcement, clock, random, onEvent: discoveryLog(this.#log) });
  }

  /** Gets the node id from wherever it comes, and holds it. */
  async #lease(taskId: string): Promise<number> {
    const { nodeId, provider } = this.settings;
    if (nodeId !== undefined) {
      const { staticLease } = await import('../lease/static-lease.js');
      this.signals.interrupted.throwIfAborted();
      this.#log.info({ nodeId }, `node id ${nodeId} is fixed: no lease, no store`);
      return this.#hold(staticLease({ id: nodeId, taskId }), { leases: undefined, announcesNode: true });
    }
    if (provider === 'zookeeper') return this.#hold(await this.#allocate(taskId), { leases: undefined, announcesNode: false });
    const store = await this.#openStore();
    try {
      const lease = await this.#acquire(store, taskId);
      const { inspectCluster } = await import('../lease/inspect.js');
      const { StoreSession } = await import('../lease/store-session.js');
      const session = new StoreSession(store, this.io.clock, REQUEST_TIMEOUT_MS);
      return await this.#hold(lease, { leases: () => inspectCluster(session), announcesNode: true });
    } finally {
      await this.#within(CLOSE_LIMIT_MS, store.close(), 'closing the store');
    }
  }

  async #openStore(): Promise<LeaseStore> {
    const { store, endpoint, region } = this.settings;
    const { clock, random } = this.io;
    if (store.kind === 'memory')
      this.#log.warn('memory: is private to this process: no other task will see this lease. It is for trials only');
    if (store.kind === 's3') (await import('./lean-memory.js')).keepMemoryLean();
    const { openStore } = await import('../store/open-store.js');
    return openStore(store, {
      clock,
      random,
      requestTimeoutMs: REQUEST_TIMEOUT_MS,
      ...(endpoint !== undefined && { endpoint }),
      ...(region !== undefined && { region }),
    });
  }

  async #acquire(store: LeaseStore, taskId: string): Promise<Lease> {
    const { nodes, durationMs, graceMs, acquireTimeoutMs } = this.settings;
    const { clock, random } = this.io;
    const { acquireLease } = await import('../lease/acquire-lease.js');
    const signal = this.signals.interrupted;
    const onEvent = this.#listener();
    return acquireLease({ store, clock, random, taskId, nodes, durationMs, graceMs, acquireTimeoutMs, signal, onEvent });
  }

  /** A node id from ZooKeeper alone. */
  async #allocate(taskId: string): Promise<Lease> {
    const { zookeeper, fields: data } = this.#discoverer as Discoverer;
    const { acquireTimeoutMs } = this.settings;
    const { clock, random } = this.io;
    const { acquireFromZooKeeper } = await import('../discovery/allocation/acquire-from-zookeeper.js');
    const signal = this.signals.interrupted;
    return acquireFromZooKeeper({ zookeeper, clock, random, taskId, acquireTimeoutMs, signal, data, onEvent: this.#listener() });
  }

  #listener(): LeaseListener {
    const report = leaseLog(this.#log);
    return (event) => {
      // The guard first: it must not learn of the new deadline late because somebody does not read the log.
      if (event.type === 'renewed') this.#guard?.extend(event.deadline);
      else if (event.type === 'acquired') this.#origin = event.from;
      report(event);
    };
  }

  /** Runs the command while the lease is held, and releases it once the work has ended. */
  async #hold(lease: Lease, facts: Pick<DiscoveredLease, 'leases' | 'announcesNode'>): Promise<number> {
    let routing: RoutingEntries | undefined;
    try {
      this.signals.interrupted.throwIfAborted();
      routing = await this.#announce({ lease, origin: this.#origin, ...facts });
      this.signals.interrupted.throwIfAborted();
      this.#workEnded = false;
      const result = await this.#supervise(lease, routing);
      this.#workEnded = result.workEnded;
      return result.exitCode;
    } finally {
      // Whatever has happened: the command is not asked any more.
      void routing?.withdraw();
      // Out of the tree first: nobody should be sent to a node id that another task may have by then.
      if (this.#discoverer) await this.#within(WITHDRAW_LIMIT_MS, this.#discoverer.leave(), 'leaving the discovery tree');
      // A lost lease has nothing left to release.
      if (this.#workEnded && lease.isValid()) await this.#within(RELEASE_LIMIT_MS, lease.release(), 'the release');
    }
  }

  /** Announces the node id; what sends work to the command is undefined where that is not announced. */
  async #announce(held: DiscoveredLease): Promise<RoutingEntries | undefined> {
    const { zookeeper } = this.settings;
    if (this.#discoverer === undefined || zookeeper === undefined) return undefined;
    const { check, service, endpoints } = zookeeper;
    const discovery = await this.#discoverer.start({ ...held, announcesService: check === undefined }, this.signals.interrupted);
    if (service === undefined && endpoints === undefined) return undefined;
    const { RoutingEntries } = await import('./routing-entries.js');
    return new RoutingEntries({ discovery, check, clock: this.io.clock, log: this.#log });
  }

  async #supervise(lease: Lease, routing: RoutingEntries | undefined): Promise<SuperviseResult> {
    const { io, signals, command } = this;
    const log = this.#log;
    const guarded = canGuard(io.env.PATH);
    if (guarded) this.#guard = startGuard({ clock: io.clock, path: io.env.PATH });
    else log.warn(`no ${SHELL} or no sleep here: nothing will stop the command when this process is killed or paused`);
    const env = { ...io.env, NODE_ID: String(lease.id), NODE_ID_VERSION: String(lease.version), NODELEASE_TASK_ID: lease.taskId };
    try {
      return await supervise({
        lease,
        clock: io.clock,
        log,
        guard: this.#guard,
        signals,
        keyboard: io.keyboard,
        beforeStop: routing && (() => routing.withdraw()),
        start: async () => {
          const child = await startChild({ command, env, gated: guarded });
          routing?.begin();
          return child;
        },
      });
    } catch (error) {
      // For any other error the child may be running: then the guard ends it, as soon as this process is gone.
      if (!(error instanceof ChildStartError)) throw error;
      this.#guard?.done();
      log.fatal(explain(error));
      return { exitCode: error.missing ? ExitCode.notFound : ExitCode.notExecutable, workEnded: true };
    }
  }

  /** Waits for something that tidies up, but not for ever, and without failing for it. */
  async #within(limitMs: number, work: Promise<void>, what: string): Promise<void> {
    const limit = new AbortController();
    const late = this.io.clock.sleep(limitMs, limit.signal).then(
      () => 'late',
      () => undefined,
    );
    try {
      if ((await Promise.race([work, late])) === 'late') this.#log.warn(`${what} took more than ${limitMs} ms: not waiting for it`);
    } catch (error) {
      this.#log.warn(`${what} failed: ${explain(error)}`);
    } finally {
      limit.abort();
    }
  }
}
