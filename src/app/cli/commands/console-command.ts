import { ConfigError, explain } from '../../../core/base/errors.js';
import { DEFAULT_LISTEN_ADDRESS, isLoopback, reachableUrl } from '../../../core/settings/listen-address.js';
import type { NodeServer } from '../../http/node-server.js';
import { problemOf } from '../../http/problem.js';
import { say } from '../../kit/answer.js';
import {
  type Call,
  connectTo,
  interruptible,
  interruption,
  isVisible,
  logEnd,
  reported,
} from '../../kit/call.js';
import { loggerFor } from '../../kit/log/logger.js';
import { consoleParts } from '../../products.js';
import { ownClusterView } from '../own-cluster-view.js';

/** The options of `console` that are no settings. */
interface ConsoleOptions {
  readonly allowWrites?: boolean;
}

/**
 * `nodelease console`: serves the console of a cluster, without holding a node id, until a signal ends it: 0
 * for SIGINT and SIGTERM. The URL is the answer, on one line of standard output. It starts without the store
 * and ZooKeeper, too, and shows that they are away. The cluster is read, about once a second, only while a
 * browser shows it. With ZooKeeper there is a page of the services that Curator knows of, too.
 */
export async function consoleCommand(call: Call<ConsoleOptions>): Promise<number> {
  const {
    options: { allowWrites },
    settings,
    io,
  } = call;
  const { http: at, bearerTokenFile, store, provider, zookeeper } = settings;
  if (!isVisible(settings))
    throw new ConfigError(
      '--store',
      store,
      'a store that others see, too (what is in memory is seen by its holder alone)',
    );
  const lacking = !zookeeper
    ? '--zookeeper with it (only services and shared data can be changed)'
    : bearerTokenFile === undefined && '--bearer-token-file with it (a page changes nothing without a token)';
  if (allowWrites && lacking) throw new ConfigError('--allow-writes', true, lacking);
  const work = async (interrupted: AbortSignal) => {
    const log = await loggerFor(settings, io);
    const cluster = ownClusterView(settings, io, log);
    let server: NodeServer | undefined;
    const connected = zookeeper && (await connectTo(zookeeper, io));
    try {
      // Connects to nothing yet, but finds settings that cannot be right.
      await cluster.open();
      const [{ startConsoleServer }, { clusterMetrics }] = await Promise.all([
        import('../../http/node-server.js'),
        import('../../http/cluster-metrics.js'),
      ]);
      const isPrivate = bearerTokenFile !== undefined || isLoopback((at ?? DEFAULT_LISTEN_ADDRESS).host);
      const { random } = io;
      server = await startConsoleServer(at, {
        bearerTokenFile,
        clock: io.clock,
        cluster: () => cluster.open(),
        metrics: clusterMetrics(() => cluster.open()),
        parts:
          connected &&
          (await consoleParts({ zookeeper: connected, settings, random, allowWrites, isPrivate })),
        // The page shows that the store is away: no line for every request.
        onFailure: (request, failure) =>
          log[problemOf(failure).error === 'internal' ? 'error' : 'debug'](
            { err: failure },
            `${request}: ${explain(failure)}`,
          ),
      });
      const url = reachableUrl(server.address);
      say(io, url);
      const of = provider === 'zookeeper' && zookeeper ? zookeeper.connect.text : store;
      log.info({ url: server.url }, `the console of ${of} is at ${url}`);
      if (!server.protected) {
        log.warn(
          `every host that reaches ${server.url} can see all leases: a bearer token file, or a loopback address, keeps others out`,
        );
      }
      return logEnd(await interruption(interrupted), log);
    } finally {
      await server?.close();
      await Promise.all([cluster.close(), connected?.close()]);
    }
  };
  return reported(call, () => interruptible(io, work));
}
