import { explain } from '../../core/base/errors.js';
import { DEFAULT_LISTEN_ADDRESS } from '../../core/settings/listen-address.js';
import { parseStrategy } from '../../zookeeper/services/strategies.js';
import { problemOf } from '../http/problem.js';
import { say } from '../kit/answer.js';
import { interruption, logEnd, onConnecting, type ZooKeeperCall } from '../kit/call.js';
import { type Logger, loggerFor } from '../kit/log/logger.js';
import { zookeeperLog } from '../kit/log/zookeeper-log.js';
import { listenerFor } from '../products.js';
import type { DiscoveryServer, DiscoveryServerEvent } from '../services/curator/discovery-server.js';

/** The options of `discovery serve` that are no settings, as they are on the command line. */
interface ServeOptions {
  readonly readOnly?: boolean;
  readonly allowWrites?: boolean;
  readonly strategy?: string;
}

/**
 * `nodelease discovery serve`: answers over HTTP who offers which service, until a signal ends it: 0 for
 * SIGINT and SIGTERM. The address is the answer, on one line of standard output; events are logged. It starts
 * without ZooKeeper, too, and answers 503 until there is a connection.
 *
 * @throws {ConfigError} when an option is wrong, or it cannot listen where it should
 */
export function serveDiscovery(call: ZooKeeperCall<ServeOptions>): Promise<number> {
  const { options, settings, io } = call;
  const { readOnly, allowWrites } = options;
  // Before a connection is opened.
  const strategy = options.strategy === undefined ? undefined : parseStrategy(options.strategy);
  return onConnecting(call, async (zookeeper, signal) => {
    const { startDiscoveryServer } = await import('../services/curator/discovery-server.js');
    const log = await loggerFor(settings, io);
    const { basePath } = settings.zookeeper;
    const { clock, random } = io;
    const listener = await listenerFor({ settings, io, log });
    const server = await startDiscoveryServer({
      readOnly,
      allowWrites,
      // The variable may be there for other programs.
      bearerTokenFile: readOnly ? undefined : settings.bearerTokenFile,
      strategy,
      metrics: listener?.metrics,
      zookeeper,
      clock,
      random,
      basePath,
      listen: settings.http ?? DEFAULT_LISTEN_ADDRESS,
      onEvent: discoveryServeLog(log),
      labels: { listen: '--http', bearerTokenFile: '--bearer-token-file', allowWrites: '--allow-writes' },
    }).catch(async (error: unknown) => {
      await listener?.close();
      throw error;
    });
    const forget = zookeeper.onState(zookeeperLog(log, zookeeper.description));
    try {
      say(io, server.url);
      const { url, writes } = server;
      log.info(
        { url, writes },
        `serving ${basePath} of ${zookeeper.description} at ${url}, ${ACCESS[writes]}`,
      );
      return logEnd(await interruption(signal), log);
    } finally {
      forget();
      await Promise.all([server.close(), listener?.close()]);
    }
  });
}

const ACCESS: Readonly<Record<DiscoveryServer['writes'], string>> = {
  nobody: 'read-only',
  token: 'changes with the token only',
  anybody: 'changes by any client on this machine',
};

/**
 * A listener that logs one line an event. `zookeeperLog` logs a lost connection, so that not every request does.
 */
export function discoveryServeLog(log: Pick<Logger, 'debug' | 'warn' | 'error'>) {
  return (event: DiscoveryServerEvent) => {
    if (event.type === 'unreadable')
      return log.warn({ path: event.path }, `${event.path} ${event.problem}: ignored`);
    const { error } = problemOf(event.error);
    const level = error === 'internal' ? 'error' : error === 'unavailable' ? 'debug' : 'warn';
    const facts = level === 'error' ? { err: event.error } : {};
    return log[level](facts, `${event.request}: ${explain(event.error)}`);
  };
}
