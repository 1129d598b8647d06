import { announcingProblem, type Settings, type ZooKeeperSettings } from '../config.js';
import type { DiscoveredLease, Discoverer } from '../discovery/discoverer.js';
import type { Discovery, TenureOrigin } from '../discovery/discovery.js';
import type { Lease, LeaseListener } from '../lease/lease.js';
import type { NodeMonitor } from '../monitor/node-monitor.js';
import type { LeaseStore } from '../store/lease-store.js';
import { defaultTaskId } from '../task-id.js';
import type { OpenTelemetryTracer } from '../telemetry/open-telemetry-tracer.js';
import { preloadedTracer } from '../telemetry/preloaded-sdk.js';
import type { Io } from './io.js';
import { leaseLog } from './lease-log.js';
import type { Logger } from './logger.js';
import type { NodeHttp } from './node-http.js';
import { openedStore, REQUEST_TIMEOUT_MS } from './opened-store.js';
import { onRetirement } from './retirement.js';
import type { RoutingEntries } from './routing-entries.js';
import type { SignalRelay } from './signal-relay.js';
import { withTimeout } from './with-timeout.js';

/** A node id that is held for some work. */
export interface HeldNode {
  readonly lease: Lease;
  /** Names the task in every line. */
  readonly log: Logger;
  /** What sends work here; undefined where that is not announced. Begun, and in the end withdrawn, by the work; withdrawn in any case afterwards. */
  readonly routing: RoutingEntries | undefined;
  /** The URL by which programs on this host reach the HTTP server; undefined where there is none. */
  readonly url: string | undefined;
}

/** How work that was done for a node id has ended. */
export interface WorkEnd {
  readonly exitCode: number;
  /** True when no work that relies on the node id is left, so that it may be released (rule 8). */
  readonly workEnded: boolean;
}

/** What a node id is held for. */
export interface Work {
  /** The lease has been renewed: told before anybody else hears of it, on the engine's own time. Must neither throw nor block. */
  renewed?(deadline: number): void;
  /** Does the work. The node id is given back when this has settled; where it rejects, work is taken to be left. */
  perform(held: HeldNode): Promise<WorkEnd>;
}

export interface TenancyOptions {
  readonly settings: Settings;
  readonly io: Io;
  readonly signals: SignalRelay;
  readonly log: Logger;
  /** What answers over HTTP, from before a node id is acquired; undefined for nothing. */
  readonly http?: { readonly monitor: NodeMonitor; readonly open: (log: Logger) => Promise<NodeHttp> } | undefined;
}

/** How long the release may hold up the exit, in milliseconds. */
const RELEASE_LIMIT_MS = 5_000;
/** How long taking the node out of the discovery tree may hold up the release, in milliseconds. */
const WITHDRAW_LIMIT_MS = 1_500;
/** How long the closing of the store may hold up the exit, in milliseconds. */
const CLOSE_LIMIT_MS = 500;
/** How long the export of the last spans may hold up the exit, in milliseconds. */
const FLUSH_LIMIT_MS = 500;

/** One tenancy of a node id, from acquiring to releasing: what every command that holds one for others does around its work. */
export class Tenancy {
  #discoverer: Discoverer | undefined;
  #origin: TenureOrigin = 'static';
  /** False while work that relies on the node id may be left. */
  #workEnded = true;
  #url: string | undefined;
  #tracer: OpenTelemetryTracer | undefined;
  #log: Logger;

  constructor(
    private readonly options: TenancyOptions,
    private readonly work: Work,
  ) {
    this.#log = options.log;
  }

  /**
   * Listens where there is HTTP, acquires, announces, has the work done, withdraws, releases. Resolves to the work's exit code.
   *
   * @throws whatever kept it from a node id: {ConfigError}, {StoreError}, `Interrupted`, …
   */
  async execute(): Promise<number> {
    const { settings, io, signals } = this.options;
    const signal = signals.interrupted;
    if (io.processId === 1) this.#log.warn('node as process 1 collects no orphaned processes: start the nodelease script by its own name');
    // First of all: whoever asks is told why there is no node id yet, and a port that is taken costs none.
    const http = await this.options.http?.open(this.#log);
    this.#url = http?.url;
    try {
      const taskId = settings.taskId ?? (await defaultTaskId({ ...io, signal, warn: (message) => this.#log.warn(message) }));
      this.#log = this.#log.child({ taskId });
      return await this.#discover(taskId);
    } catch (error) {
      this.options.http?.monitor.failed(error);
      throw error;
    } finally {
      // Until here it says that the work is being ended.
      await http?.close();
      // The process exits next, whatever an SDK still keeps for its next batch.
      if (this.#tracer) await this.#withTimeout(FLUSH_LIMIT_MS, this.#tracer.flush(), 'exporting the spans');
    }
  }

  /** With ZooKeeper around it, where there is any. */
  async #discover(taskId: string): Promise<number> {
    const { settings, signals } = this.options;
    if (settings.zookeeper === undefined) return this.#lease(taskId);
    this.#discoverer = await this.#openDiscoverer(settings.zookeeper);
    try {
      await this.#discoverer.connected(signals.interrupted);
      return await this.#lease(taskId);
    } finally {
      // A node id that lives by the session is free as soon as that ends: while work is left, it has to run out by itself.
      if (settings.provider === 'store' || this.#workEnded) await this.#discoverer.close();
    }
  }

  /** Begins to connect to ZooKeeper, while the node id is being acquired. */
  async #openDiscoverer(settings: ZooKeeperSettings): Promise<Discoverer> {
    const { service, address, port, payload, payloadType, uriSpec, basePath, endpoints, check: _, ...session } = settings;
    const announcement = { service, address, port, payload, payloadType, uriSpec, basePath, endpoints };
    const { clock, random } = this.options.io;
    const problem = announcingProblem(settings);
    if (problem !== undefined) this.#log.warn(`discovery: ${problem}`);
    const { Discoverer } = await import('../discovery/discoverer.js');
    const { discoveryLog } = await import('./discovery-log.js');
    const report = discoveryLog(this.#log);
    const monitor = this.options.http?.monitor;
    return new Discoverer({
      ...{ ...session, announcement, clock, random },
      onEvent: (event) => {
        monitor?.onDiscoveryEvent(event);
        report(event);
      },
    });
  }

  /** Gets the node id from wherever it comes, and holds it. */
  async #lease(taskId: string): Promise<number> {
    const { settings, signals, io } = this.options;
    const { nodeId, provider } = settings;
    if (nodeId !== undefined) {
      const { staticLease } = await import('../lease/static-lease.js');
      signals.interrupted.throwIfAborted();
      this.#log.info({ nodeId }, `node id ${nodeId} is fixed: no lease, no store`);
      return this.#hold(staticLease({ id: nodeId, taskId }), { leases: undefined, announcesNode: true });
    }
    if (provider === 'zookeeper') return this.#hold(await this.#allocate(taskId), { leases: undefined, announcesNode: false });
    const store = await this.#openStore();
    try {
      const lease = await this.#acquire(store, taskId);
      const { inspectCluster } = await import('../lease/inspect.js');
      const { StoreSession } = await import('../lease/store-session.js');
      const session = new StoreSession(store, io.clock, REQUEST_TIMEOUT_MS);
      return await this.#hold(lease, { leases: () => inspectCluster(session), announcesNode: true });
    } finally {
      await this.#withTimeout(CLOSE_LIMIT_MS, store.close(), 'closing the store');
    }
  }

  async #openStore(): Promise<LeaseStore> {
    const { settings, io } = this.options;
    const { kind } = settings.store;
    if (kind === 'memory') this.#log.warn('memory: is private to this process: no other task will see this lease. It is for trials only');
    if (kind === 's3') (await import('./lean-memory.js')).keepMemoryLean();
    return openedStore(settings, io);
  }

  async #acquire(store: LeaseStore, taskId: string): Promise<Lease> {
    const { settings, io, signals } = this.options;
    const { nodes, durationMs, graceMs, acquireTimeoutMs, settingsIntervalMs } = settings;
    const { clock, random } = io;
    const { acquireLease } = await import('../lease/acquire-lease.js');
    const wanted = { nodes, durationMs, graceMs, acquireTimeoutMs, settingsIntervalMs };
    return acquireLease({ ...{ store, clock, random, taskId }, ...wanted, ...(await this.#observers()), signal: signals.interrupted });
  }

  /** A node id from ZooKeeper alone. */
  async #allocate(taskId: string): Promise<Lease> {
    const { zookeeper, fields: data } = this.#discoverer as Discoverer;
    const { settings, io, signals } = this.options;
    const { clock, random } = io;
    const { acquireFromZooKeeper } = await import('../discovery/allocation/acquire-from-zookeeper.js');
    const { acquireTimeoutMs } = settings;
    const wanted = { data, acquireTimeoutMs };
    return acquireFromZooKeeper({
      ...{ zookeeper, clock, random, taskId },
      ...wanted,
      ...(await this.#observers()),
      signal: signals.interrupted,
    });
  }

  /** Who is told what happens to the lease. */
  async #observers() {
    const { env, execArgv, clock } = this.options.io;
    this.#tracer = await preloadedTracer({ execArgv, nodeOptions: env.NODE_OPTIONS }, clock);
    return { onEvent: this.#listener(), tracer: this.#tracer };
  }

  #listener(): LeaseListener {
    const report = leaseLog(this.#log);
    const monitor = this.options.http?.monitor;
    return (event) => {
      // The work first: it must not learn of the new deadline late because somebody does not read the log.
      if (event.type === 'renewed') this.work.renewed?.(event.deadline);
      else if (event.type === 'acquired') this.#origin = event.from;
      monitor?.onLeaseEvent(event);
      report(event);
    };
  }

  /** Has the work done while the lease is held, and releases it once the work has ended. */
  async #hold(lease: Lease, facts: Pick<DiscoveredLease, 'leases' | 'announcesNode'>): Promise<number> {
    const { signals, http } = this.options;
    let routing: RoutingEntries | undefined;
    let forgetRetirement = () => {};
    try {
      signals.interrupted.throwIfAborted();
      const discovery = await this.#announce({ lease, origin: this.#origin, ...facts });
      routing = discovery && (await this.#routing(discovery));
      signals.interrupted.throwIfAborted();
      http?.monitor.hold(lease, discovery);
      // No new work for a node id that is to go; its znode says who holds it, for as long as it is held.
      forgetRetirement = onRetirement(lease, () => void routing?.withdraw());
      this.#workEnded = false;
      const end = await this.work.perform({ lease, log: this.#log, routing, url: this.#url });
      this.#workEnded = end.workEnded;
      return end.exitCode;
    } finally {
      forgetRetirement();
      if (http?.monitor.lease !== undefined) http.monitor.stopping();
      // Whatever has happened: the command is not asked any more.
      void routing?.withdraw();
      // Out of the tree first: nobody should be sent to a node id that another task may have by then.
      if (this.#discoverer) await this.#withTimeout(WITHDRAW_LIMIT_MS, this.#discoverer.leave(), 'leaving the discovery tree');
      // A lost lease has nothing left to release.
      if (this.#workEnded && lease.isValid()) await this.#withTimeout(RELEASE_LIMIT_MS, lease.release(), 'the release');
    }
  }

  /** Announces the node id; undefined without ZooKeeper. */
  async #announce(held: DiscoveredLease): Promise<Discovery | undefined> {
    const { settings, signals } = this.options;
    const announcesService = settings.zookeeper?.check === undefined;
    return this.#discoverer?.start({ ...held, announcesService }, signals.interrupted);
  }

  /** What sends work here; undefined where that is not announced. */
  async #routing(discovery: Discovery): Promise<RoutingEntries | undefined> {
    const { check, service, endpoints } = this.options.settings.zookeeper ?? {};
    if (service === undefined && endpoints === undefined) return undefined;
    const { RoutingEntries } = await import('./routing-entries.js');
    return new RoutingEntries({ discovery, check, clock: this.options.io.clock, log: this.#log });
  }

  /** Waits for something that tidies up, but not for ever, and without failing for it. */
  #withTimeout(limitMs: number, work: Promise<void>, what: string): Promise<void> {
    return withTimeout({ limitMs, clock: this.options.io.clock, log: this.#log, what }, work);
  }
}
