import { type MessagePort, parentPort, workerData } from 'node:worker_threads';
import { explain } from '../../base/errors.js';
import { systemClock as clock, systemRandom as random } from '../../base/system.js';
import { type NodeServer, startNodeServer } from '../../http/node-server.js';
import { problemOf } from '../../http/problem.js';
import { toWire, type WireError } from '../../runtime/worker/messages.js';
import type { ListenAddress } from '../../settings/listen-address.js';
import type { Settings } from '../../settings/settings.js';
import { BoundedLog, type LogLine } from '../log/bounded-log.js';
import { AskedMetrics, type CollectedMetrics, HealthMirror } from './node-mirror.js';
import { isVisible, OwnClusterView } from './own-cluster-view.js';

/** What the thread that answers over HTTP is started with; everything in it can be cloned, or moved. */
export interface NodeHttpData {
  readonly listen: ListenAddress;
  readonly settings: Settings;
  readonly heldForOthers: boolean;
  /** Of a `HealthPublisher`. */
  readonly health: MessagePort;
  /** Whether debug lines are logged. */
  readonly debug: boolean;
}

/** To the thread that answers over HTTP. */
export type ToNodeHttp =
  /** Answers `metrics`; undefined where there are none to be had. */
  | { readonly type: 'metrics'; readonly metrics: CollectedMetrics | undefined }
  /** Answered by `closed`. */
  | { readonly type: 'close' };

/** From the thread that answers over HTTP. */
export type FromNodeHttp =
  /** Begins with one of these two. */
  | { readonly type: 'listening'; readonly address: ListenAddress; readonly url: string; readonly protected: boolean }
  | { readonly type: 'refused'; readonly error: WireError }
  | LogLine
  /** Wants the metrics of the process. */
  | { readonly type: 'metrics' }
  | { readonly type: 'closed' };

/**
 * What a command answers over HTTP, in a thread of its own: no number of requests delays the thread that renews the lease. What
 * it tells of the lease is mirrored; what it tells of the cluster comes by connections of its own.
 */
class NodeHttpThread {
  readonly #log: BoundedLog;
  readonly #metrics: AskedMetrics;
  readonly #node: HealthMirror;
  readonly #cluster: OwnClusterView | undefined;
  #server: NodeServer | undefined;

  constructor(
    private readonly port: MessagePort,
    private readonly data: NodeHttpData,
  ) {
    this.#log = new BoundedLog(clock, (line) => this.#post(line));
    process.removeAllListeners('warning').on('warning', (warning) => this.#log.write('warn', explain(warning)));
    this.#metrics = new AskedMetrics(clock, () => this.#post({ type: 'metrics' }));
    this.#node = new HealthMirror(data.health, clock);
    const log = { warn: (message: string) => this.#log.write('warn', message) };
    if (isVisible(data.settings)) this.#cluster = new OwnClusterView(data.settings, { clock, random }, log);
    port.on('message', (message: ToNodeHttp) => {
      if (message.type === 'metrics') this.#metrics.answered(message.metrics);
      else void this.#close();
    });
  }

  async run(): Promise<void> {
    const { listen, heldForOthers, settings } = this.data;
    const cluster = this.#cluster;
    try {
      this.#server = await startNodeServer({
        ...{ listen, bearerTokenFile: settings.bearerTokenFile, heldForOthers, clock, monitor: this.#node, metrics: this.#metrics },
        cluster: cluster && (() => cluster.open()),
        onFailure: (request, failure) => this.#failed(request, failure),
        labels: { listen: '--http', bearerTokenFile: '--bearer-token-file' },
      });
      const { address, url, protected: isProtected } = this.#server;
      this.#post({ type: 'listening', address, url, protected: isProtected });
    } catch (error) {
      this.#post({ type: 'refused', error: toWire(error) });
    }
  }

  #failed(request: string, failure: unknown): void {
    const text = `${request}: ${explain(failure)}`;
    if (problemOf(failure).error === 'internal') this.#log.write('error', text, failure instanceof Error ? failure.stack : undefined);
    // A store that is away is logged once, where it is needed, and not for every request.
    else if (this.data.debug) this.#log.write('debug', text);
  }

  async #close(): Promise<void> {
    await this.#server?.close();
    await this.#cluster?.close();
    this.#node.close();
    this.#post({ type: 'closed' });
  }

  #post(message: FromNodeHttp): void {
    this.port.postMessage(message);
  }
}

if (parentPort === null) throw new Error('this module runs as a worker thread only');
void new NodeHttpThread(parentPort, workerData as NodeHttpData).run();
