import { Worker } from 'node:worker_threads';
import { explain } from '../../base/errors.js';
import type { MetricsText } from '../../http/node-app.js';
import type { NodeMonitor } from '../../monitor/node-monitor.js';
import { mayHaveSdk } from '../../runtime/preloaded-sdk.js';
import { fromWire } from '../../runtime/worker/messages.js';
import { type ListenAddress, reachableUrl } from '../../settings/listen-address.js';
import type { Settings } from '../../settings/settings.js';
import { present } from '../../settings/sources.js';
import type { Logger } from '../log/logger.js';
import type { Io } from '../terminal/io.js';
import { HealthPublisher } from './health-mirror.js';
import type { FromNodeHttp, LogLine, NodeHttpData, ToNodeHttp } from './node-http-messages.js';
import { type ClusterPlace, OwnClusterView } from './own-cluster-view.js';
import { RestartingWorker, type StartedThread } from './restarting-worker.js';

/** What a command that holds a node id answers over HTTP. */
export interface NodeHttp {
  /** By which programs on this host reach it, without a slash at the end. */
  readonly url: string;
  /** Ends it, and what it has opened, within a second or so. Never rejects. */
  close(): Promise<void>;
}

export interface NodeHttpOptions {
  readonly at: ListenAddress;
  readonly settings: Settings;
  readonly io: Io;
  readonly log: Logger;
  readonly monitor: NodeMonitor;
  /** Whether other processes work with the node id, and know of its end by `/lease` alone. @default false */
  readonly heldForOthers?: boolean;
}

type Listening = Extract<FromNodeHttp, { type: 'listening' }>;

/** How long the exit waits for requests under way, and for connections to be closed, in milliseconds. */
const CLOSE_TIMEOUT_MS = 1_500;
/** What the thread may take before it is started anew, so that the process, and the lease, do not end with it. In megabytes. */
const MEMORY_LIMIT_MB = 256;

/**
 * Listens for HTTP, in a thread of its own: no client can keep the lease from being renewed. Resolves once it does; from then on nothing that
 * goes wrong with it ends the command.
 *
 * @throws {ConfigError} naming the option when it cannot listen there, or the token file holds none
 */
export async function openNodeHttp(options: NodeHttpOptions): Promise<NodeHttp> {
  const { log } = options;
  const threads = new NodeHttpThreads(options);
  const thread = await threads.open();
  const { address, url, protected: isProtected } = threads.listening;
  log.info({ url }, `answering HTTP requests at ${url}`);
  if (!isProtected) {
    log.warn(`whoever reaches ${url} can see all leases and metrics: a bearer token file, or a loopback address, keeps others out`);
  }
  return {
    url: reachableUrl(address),
    close: async () => {
      await thread.close();
      threads.close();
    },
  };
}

/** The side of this thread: it tells the other one of the node, collects metrics for it, and writes its log. */
class NodeHttpThreads {
  readonly #publisher: HealthPublisher;
  readonly #place: ClusterPlace | undefined;
  /** Set once the first thread listens: all others do so on the same port. */
  #listening: Listening | undefined;
  #metrics: Promise<MetricsText & { close(): void }> | undefined;

  constructor(private readonly options: NodeHttpOptions) {
    const { settings, monitor } = options;
    this.#publisher = new HealthPublisher(monitor);
    if (!OwnClusterView.isPossible(settings)) return;
    const { provider, store, endpoint, region, zookeeper } = settings;
    this.#place = { provider, store, ...present({ endpoint, region, zookeeper }) };
  }

  get listening(): Listening {
    if (this.#listening === undefined) throw new Error('not listening yet');
    return this.#listening;
  }

  async open(): Promise<RestartingWorker> {
    const { io, log } = this.options;
    const thread = RestartingWorker.start({
      clock: io.clock,
      start: () => this.#start(),
      askToEnd: (worker) => worker.postMessage({ type: 'close' } satisfies ToNodeHttp),
      endTimeoutMs: CLOSE_TIMEOUT_MS,
      onFailure: (failure, againInMs) => log.error(`HTTP: ${explain(failure)}; starting it again in ${againInMs} ms`),
    });
    // Loaded while the thread starts, and there before anything happens that it counts.
    this.#metrics = this.#openMetrics();
    try {
      const [started] = await Promise.all([thread, this.#metrics]);
      return started;
    } catch (error) {
      this.close();
      throw error;
    }
  }

  close(): void {
    this.#publisher.close();
    void this.#metrics?.then((metrics) => metrics.close());
  }

  #start(): StartedThread {
    const { at, settings, log, heldForOthers = false, io } = this.options;
    const { port = at.port } = this.#listening?.address ?? {};
    const mirror = this.#publisher.connect();
    const data: NodeHttpData = {
      ...{ listen: { host: at.host, port }, bearerTokenFile: settings.bearerTokenFile, heldForOthers },
      ...{ cluster: this.#place, mirror, debug: log.isLevelEnabled('debug') },
    };
    const worker = new Worker(new URL('./node-http-thread.js', import.meta.url), {
      workerData: data,
      transferList: [mirror.port],
      ...{ execArgv: [], env: environment(io.env), resourceLimits: { maxOldGenerationSizeMb: MEMORY_LIMIT_MB } },
      // Not the process' own: standard output is the command's, and standard error the log's.
      ...{ stdout: true, stderr: true },
    });
    worker.stdout.resume();
    worker.stderr.on('data', (text: Buffer) => log.warn(`HTTP: ${String(text).trim()}`));
    const ready = new Promise<void>((resolve, reject) => {
      worker.on('message', (message: FromNodeHttp) => {
        if (message.type === 'listening') {
          if (this.#listening !== undefined) log.info(`answering HTTP requests again at ${message.url}`);
          this.#listening ??= message;
          resolve();
        } else if (message.type === 'refused') reject(fromWire(message.error));
        else if (message.type === 'metrics') void this.#collect(worker, message);
        else if (message.type === 'log') this.#write(message);
        else void worker.terminate();
      });
    });
    return { worker, ready };
  }

  async #openMetrics() {
    const { monitor, io } = this.options;
    const { NodeMetrics } = await import('../../http/node-metrics.js');
    return new NodeMetrics({ monitor, clock: io.clock });
  }

  async #collect(worker: Worker, { id, until }: Extract<FromNodeHttp, { type: 'metrics' }>): Promise<void> {
    const { io, log } = this.options;
    if (io.clock.monotonic() > until) return;
    try {
      const metrics = await this.#metrics;
      if (metrics === undefined) return;
      const text = await metrics.text();
      worker.postMessage({ type: 'metrics', id, contentType: metrics.contentType, text } satisfies ToNodeHttp);
    } catch (error) {
      // The request is given up after its own time-out.
      log.error({ err: error }, `GET /metrics: ${explain(error)}`);
    }
  }

  #write({ level, message, stack }: LogLine): void {
    const { log } = this.options;
    if (stack === undefined) log[level](message);
    else log[level]({ err: Object.assign(new Error(message), { stack }) }, message);
  }
}

/** An SDK that a flag loads is for the main thread: a second one would report everything twice, or take the first one's port. */
function environment(env: Io['env']): Record<string, string> {
  const { NODE_OPTIONS: nodeOptions, ...rest } = env;
  const kept = mayHaveSdk({ execArgv: [], nodeOptions }) ? rest : env;
  return Object.fromEntries(Object.entries(kept).filter((entry): entry is [string, string] => entry[1] !== undefined));
}
