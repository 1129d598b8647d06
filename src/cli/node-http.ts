import type { Settings } from '../config.js';
import { explain } from '../errors.js';
import type { ListenAddress } from '../http/listen-address.js';
import { NodeMetrics } from '../http/node-metrics.js';
import { startNodeServer } from '../http/node-server.js';
import { problemOf } from '../http/problem.js';
import type { NodeMonitor } from '../monitor/node-monitor.js';
import type { Io } from './io.js';
import type { Logger } from './logger.js';
import { OwnClusterView } from './own-cluster-view.js';
import { reachableUrl } from './reachable-url.js';

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
}

/**
 * Listens for HTTP. Resolves once it does; from then on nothing that goes wrong with it ends the command.
 *
 * @throws {ConfigError} naming the option when it cannot listen there, or the token file holds none
 */
export async function openNodeHttp({ at, settings, io, log, monitor }: NodeHttpOptions): Promise<NodeHttp> {
  const { clock } = io;
  const cluster = OwnClusterView.isPossible(settings) ? new OwnClusterView(settings, io, log) : undefined;
  const metrics = new NodeMetrics({ monitor, clock });
  const server = await startNodeServer({
    ...{ listen: at, bearerTokenFile: settings.bearerTokenFile, clock, monitor, metrics },
    cluster: cluster && (() => cluster.open()),
    onFailure: (request, failure) => {
      const { error } = problemOf(failure);
      if (error === 'internal') log.error({ err: failure }, `${request}: ${explain(failure)}`);
      // A store that is away is told once, by whoever needs it, and not for every request.
      else log.debug(`${request}: ${explain(failure)}`);
    },
    labels: { listen: '--http', bearerTokenFile: '--bearer-token-file' },
  });
  const url = reachableUrl(server.address);
  log.info({ url: server.url }, `answering HTTP requests at ${server.url}`);
  if (!server.protected) {
    log.warn(`whoever reaches ${server.url} can see all leases and metrics: a bearer token file, or a loopback address, keeps others out`);
  }
  return {
    url,
    close: async () => {
      await server.close();
      metrics.close();
      await cluster?.close();
    },
  };
}
