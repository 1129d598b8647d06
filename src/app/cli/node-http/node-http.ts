import { Worker } from 'node:worker_threads';
import { explain } from '../../../core/base/errors.js';
import { type ListenAddress, reachableUrl } from '../../../core/settings/listen-address.js';
import type { NodeMonitor } from '../../../node/runtime/node-monitor.js';
import { mayHaveSdk } from '../../../node/runtime/preloaded-sdk.js';
import { fromWire } from '../../../node/runtime/worker/messages.js';
import type { NodeMetrics } from '../../http/node-metrics.js';
import type { Io } from '../../kit/io.js';
import type { Logger } from '../../kit/log/logger.js';
import { programWork } from '../../products.js';
import type { Settings } from '../../settings/settings.js';
import type { LogLine } from './bounded-log.js';
import type { FromNodeHttp, NodeHttpData, ToNodeHttp } from './node-http-thread.js';
import { HealthPublisher } from './node-mirror.js';
import { RestartingWorker, type StartedThread } from './restarting-worker.js';

interface NodeHttpOptions {
  readonly at: ListenAddress;
  readonly settings: Settings;
  readonly io: Io;
  readonly log: Logger;
  readonly monitor: NodeMonitor;
  /** Whether other processes work with the node id, and know of its end by `/lease` alone. @default false */
  readonly heldForOthers?: boolean;
}

/**
 * What the thread may take before it is restarted, so that the process, and the lease, do not end with it.
 * In megabytes.
 */
const MEMORY_LIMIT_MB = 256;

/**
 * What a command that holds a node id answers over HTTP, in a separate thread: no client can keep the lease
 * from being renewed. This side sends that thread the node's health, collects metrics, and writes its log.
 */
export class NodeHttp {
  readonly #publisher: HealthPublisher;
  #thread: RestartingWorker | undefined;
  /** Set once the first thread listens: all others do so on the same port. */
  #listening: Extract<FromNodeHttp, { type: 'listening' }> | undefined;
  #metrics: NodeMetrics | undefined;

  private constructor(
    private readonly options: NodeHttpOptions,
    /** Work on the lease that is done by programs that ask here; undefined where there is none. */
    readonly work: Awaited<ReturnType<typeof programWork>>,
  ) {
    this.#publisher = new HealthPublisher(options.monitor);
  }

  /**
   * Resolves once it listens; from then on nothing that goes wrong with it ends the command.
   *
   * @throws {ConfigError} naming the option when it cannot listen there, or the token file holds none
   */
  static async open(options: NodeHttpOptions): Promise<NodeHttp> {
    const { io, log, monitor, settings } = options;
    const http = new NodeHttp(options, await programWork(settings, io.clock));
    const started = RestartingWorker.start({
      clock: io.clock,
      start: () => http.#start(),
      onFailure: (failure, againInMs) =>
        log.error(`HTTP: ${explain(failure)}; starting it again in ${againInMs} ms`),
    });
    try {
      // Loaded while the thread starts, and there before anything happens that it counts.
      const [thread, { NodeMetrics }] = await Promise.all([started, import('../../http/node-metrics.js')]);
      http.#thread = thread;
      http.#metrics = new NodeMetrics({ monitor, clock: io.clock });
    } catch (error) {
      await http.close();
      throw error;
    }
    return http;
  }

  /** Logs where it answers. */
  announce(log: Logger): void {
    const { url = '', protected: isProtected } = this.#listening ?? {};
    log.info({ url }, `answering HTTP requests at ${url}`);
    if (!isProtected) {
      log.warn(
        `any client that reaches ${url} can see all leases and metrics: a bearer token file, or a loopback address, keeps others out`,
      );
    }
  }

  /** By which programs on this host reach it, without a slash at the end. */
  get url(): string {
    return reachableUrl(this.#listening?.address ?? this.options.at);
  }

  /** Ends it, and what it has opened, within a second or so. Never rejects. */
  async close(): Promise<void> {
    this.work?.ended('released');
    await this.#thread?.close();
    this.#publisher.close();
    this.work?.close();
    this.#metrics?.close();
  }

  #start(): StartedThread {
    const { at, settings, log, heldForOthers = false, io } = this.options;
    const { port = at.port } = this.#listening?.address ?? {};
    const health = this.#publisher.connect();
    const work = this.work?.connect();
    const data: NodeHttpData = {
      listen: { host: at.host, port },
      settings,
      heldForOthers,
      health,
      work,
      debug: log.isLevelEnabled('debug'),
    };
    const worker = new Worker(new URL('./node-http-thread.js', import.meta.url), {
      workerData: data,
      transferList: work ? [health, work] : [health],
      execArgv: [],
      env: environment(io.env),
      resourceLimits: { maxOldGenerationSizeMb: MEMORY_LIMIT_MB },
      // Not the process' own: standard output is the command's, and standard error the log's.
      stdout: true,
      stderr: true,
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
        else if (message.type === 'metrics') void this.#collect(worker);
        else if (message.type === 'log') this.#write(message);
        else void worker.terminate();
      });
    });
    return { worker, ready };
  }

  async #collect(worker: Worker) {
    const collected = this.#metrics;
    const text = await collected?.text().catch((error: unknown) => {
      this.options.log.error({ err: error }, `GET /metrics: ${explain(error)}`);
      return undefined;
    });
    const metrics =
      collected && text !== undefined ? { contentType: collected.contentType, text } : undefined;
    worker.postMessage({ type: 'metrics', metrics } satisfies ToNodeHttp);
  }

  #write({ level, message, stack }: LogLine) {
    const { log } = this.options;
    if (stack === undefined) log[level](message);
    else log[level]({ err: Object.assign(new Error(message), { stack }) }, message);
  }
}

/**
 * An SDK that a flag loads is for the main thread: a second one would report everything twice, or take the
 * first one's port.
 */
function environment(env: Io['env']): Io['env'] {
  const { NODE_OPTIONS: nodeOptions, ...rest } = env;
  return mayHaveSdk([], nodeOptions) ? rest : env;
}
