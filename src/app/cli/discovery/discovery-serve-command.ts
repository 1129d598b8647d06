import { DEFAULT_LISTEN_ADDRESS, type ListenAddress } from '../../../node/settings/listen-address.js';
import type { ZooKeeper } from '../../../zookeeper/client/zookeeper.js';
import { parseStrategy } from '../../../zookeeper/services/strategies/strategies.js';
import type { DiscoveryServer, DiscoveryServerOptions } from '../../http/curator/discovery-server.js';
import type { OpenDns, OpenDnsOptions } from '../dns/open-dns.js';
import { say } from '../kit/answer.js';
import { interruption, logEnd, onConnecting, type WithZooKeeper, type ZooKeeperCall } from '../kit/call.js';
import { loggerFor } from '../log/logger.js';
import type { Io } from '../terminal/io.js';
import { discoveryServeLog, zookeeperLog } from './discovery-serve-log.js';

/** The options of `discovery serve` that are no settings, as they are on the command line. */
interface ServeOptions {
  readonly readOnly?: boolean;
  readonly allowWrites?: boolean;
  readonly bearerTokenFile?: string;
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
  const { strategy: name, ...options } = call.options;
  // Before a connection is opened.
  const strategy = name === undefined ? undefined : parseStrategy(name);
  return onConnecting(call, (zookeeper, signal) => serve(zookeeper, { ...options, strategy }, call, signal));
}

async function serve(
  zookeeper: ZooKeeper,
  options: Omit<ServeOptions, 'strategy'> & Pick<DiscoveryServerOptions, 'strategy'>,
  { settings, io }: { readonly settings: WithZooKeeper; readonly io: Io },
  signal: AbortSignal,
): Promise<number> {
  const { startDiscoveryServer } = await import('../../http/curator/discovery-server.js');
  const log = await loggerFor(settings, io);
  const { basePath } = settings.zookeeper;
  const { clock, random } = io;
  const dns = settings.dns && (await dnsAt(settings.dns, { settings, io, log }));
  const server = await startDiscoveryServer({
    ...options,
    metrics: dns?.metrics,
    zookeeper,
    clock,
    random,
    basePath,
    listen: settings.http ?? DEFAULT_LISTEN_ADDRESS,
    onEvent: discoveryServeLog(log),
    labels: { listen: '--http', bearerTokenFile: '--bearer-token-file', allowWrites: '--allow-writes' },
  }).catch(async (error: unknown) => {
    await dns?.close();
    throw error;
  });
  const forget = zookeeper.onState(zookeeperLog(log, zookeeper.description));
  try {
    say(io, server.url);
    const { url, writes } = server;
    log.info({ url, writes }, `serving ${basePath} of ${zookeeper.description} at ${url}, ${ACCESS[writes]}`);
    return logEnd(await interruption(signal), log);
  } finally {
    forget();
    await Promise.all([server.close(), dns?.close()]);
  }
}

async function dnsAt(
  listen: ListenAddress,
  options: Omit<OpenDnsOptions, 'listen' | 'label'>,
): Promise<OpenDns> {
  const { openDns } = await import('../dns/open-dns.js');
  return openDns({ ...options, listen, label: '--dns' });
}

const ACCESS: Readonly<Record<DiscoveryServer['writes'], string>> = {
  nobody: 'read-only',
  token: 'changes with the token only',
  anybody: 'changes by any client on this machine',
};
