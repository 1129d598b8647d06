import { type MessagePort, parentPort, workerData } from 'node:worker_threads';
import { explain } from '../../../core/base/errors.js';
import { taskProtection } from '../../../core/base/host/task-protection.js';
import { systemClock as clock, systemRandom as random } from '../../../core/base/system.js';
import type { ListenAddress } from '../../../core/settings/listen-address.js';
import { toWire, type WireError } from '../../../node/runtime/worker/messages.js';
import { busyRoutes } from '../../http/busy-routes.js';
import type { MetricsText } from '../../http/node-app.js';
import { type NodeServer, startNodeServer } from '../../http/node-server.js';
import { problemOf } from '../../http/problem.js';
import { isVisible } from '../../kit/call.js';
import { listenerFor, programRoutes } from '../../products.js';
import type { Settings } from '../../settings/settings.js';
import { ownClusterView } from '../own-cluster-view.js';
import { BoundedLog, type LogLine } from './bounded-log.js';
import { AskedMetrics, type CollectedMetrics, HealthMirror } from './node-mirror.js';

/** What the thread that answers over HTTP is started with; everything in it can be cloned, or moved. */
export interface NodeHttpData {
  readonly listen: ListenAddress;
  readonly settings: Settings;
  readonly heldForOthers: boolean;
  /** Of a `HealthPublisher`. */
  readonly health: MessagePort;
  /** Of the work that programs do; undefined where there is none. */
  readonly work: MessagePort | undefined;
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
  | {
      readonly type: 'listening';
      readonly address: ListenAddress;
      readonly url: string;
      readonly protected: boolean;
    }
  | { readonly type: 'refused'; readonly error: WireError }
  | LogLine
  /** Wants the metrics of the process. */
  | { readonly type: 'metrics' }
  | { readonly type: 'closed' };

/**
 * What a command answers over HTTP, in a separate thread: no number of requests delays the thread that renews
 * the lease. Its answers about the lease come from a mirror, those about the cluster from its own
 * connections.
 */
async function answer(
  port: MessagePort,
  { listen, settings, heldForOthers, health, work, debug }: NodeHttpData,
) {
  const post = (message: FromNodeHttp) => port.postMessage(message);
  const log = new BoundedLog(clock, post);
  process.removeAllListeners('warning').on('warning', (warning) => log.write('warn', explain(warning)));
  const metrics = new AskedMetrics(clock, () => post({ type: 'metrics' }));
  const monitor = new HealthMirror(health, clock);
  const warn = (message: string) => log.write('warn', message);
  const protect = taskProtection({ env: process.env, clock, log: { warn } });
  const cluster = isVisible(settings) ? ownClusterView(settings, { clock, random }, { warn }) : undefined;
  let server: NodeServer | undefined;
  let listener: Awaited<ReturnType<typeof listenerFor>>;
  port.on('message', async (message: ToNodeHttp) => {
    if (message.type === 'metrics') return metrics.answered(message.metrics);
    await server?.close();
    await Promise.all([cluster?.close(), listener?.close(), protect(false)]);
    monitor.close();
    post({ type: 'closed' });
  });
  const onFailure = (request: string, failure: unknown) => {
    const text = `${request}: ${explain(failure)}`;
    if (problemOf(failure).error === 'internal')
      log.write('error', text, failure instanceof Error ? failure.stack : undefined);
    // A store that is away is logged once, where it is needed, and not for every request.
    else if (debug) log.write('debug', text);
  };
  try {
    const parts = work ? [await programRoutes(work, monitor)] : [];
    if (settings.ecsProtect === 'busy') parts.push(busyRoutes(protect));
    const info = (message: string) => log.write('info', message);
    listener = await listenerFor({ settings, io: { clock, random }, log: { info, warn } });
    server = await startNodeServer({
      listen,
      bearerTokenFile: settings.bearerTokenFile,
      heldForOthers,
      clock,
      monitor,
      parts,
      metrics: listener ? joined(metrics, listener.metrics) : metrics,
      onFailure,
      cluster: cluster && (() => cluster.open()),
      labels: { listen: '--http', bearerTokenFile: '--bearer-token-file' },
    });
    const { address, url, protected: isProtected } = server;
    post({ type: 'listening', address, url, protected: isProtected });
  } catch (error) {
    post({ type: 'refused', error: toWire(error) });
  }
}

/** Two in one answer; their names differ. */
function joined(first: MetricsText, second: MetricsText): MetricsText {
  return {
    get contentType() {
      return first.contentType;
    },
    text: async () => (await Promise.all([first.text(), second.text()])).join('\n'),
  };
}

if (parentPort === null) throw new Error('this module runs as a worker thread only');
void answer(parentPort, workerData as NodeHttpData);
