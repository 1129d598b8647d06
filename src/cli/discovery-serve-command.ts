import { aborted } from '../base/abort.js';
import { parseDuration } from '../config/values.js';
import type { Settings, ZooKeeperSettings } from '../config.js';
import { parseStrategy } from '../discovery/services/strategies/parse-strategy.js';
import { ConfigError } from '../errors.js';
import type { DiscoveryServer } from '../http/discovery-server.js';
import { DEFAULT_LISTEN_ADDRESS } from '../http/listen-address.js';
import type { ZooKeeper } from '../zookeeper/zookeeper.js';
import { discoveryServeLog, zookeeperLog } from './discovery-serve-log.js';
import { ExitCode, exitCodeOfSignal } from './exit-codes.js';
import type { Io } from './io.js';
import { loggerFor } from './logger.js';
import type { Interrupted } from './signal-relay.js';
import { say } from './store-command.js';
import { onZooKeeper } from './zookeeper-command.js';

/** The options of `discovery serve` that are no settings, as they stand on the command line. */
export interface DiscoveryServeOptions {
  readonly readOnly?: boolean;
  readonly bearerTokenFile?: string;
  readonly staticTimeout?: string;
  readonly strategy?: string;
}

/**
 * `nodelease discovery serve`: answers over HTTP who offers which service, until a signal ends it: 0 for SIGINT and SIGTERM. The address is
 * the answer, on one line of standard output; what happens is logged. It starts without ZooKeeper too, and answers 503 until that is there.
 *
 * @throws {ConfigError} when an option is wrong, or it cannot listen where it should
 */
export function discoveryServeCommand(
  options: DiscoveryServeOptions,
  settings: Settings & { readonly zookeeper: ZooKeeperSettings },
  io: Io,
): Promise<number> {
  // Before anything is opened.
  const checked = checkOptions(options);
  return onZooKeeper(settings, io, (zookeeper, signal) => serve(zookeeper, { ...options, ...checked }, settings, io, signal));
}

type CheckedOptions = Omit<DiscoveryServeOptions, 'strategy' | 'staticTimeout'> & ReturnType<typeof checkOptions>;

function checkOptions({ staticTimeout, strategy, readOnly }: DiscoveryServeOptions) {
  if (staticTimeout !== undefined && readOnly)
    throw new ConfigError('--static-timeout', staticTimeout, 'no --read-only beside it (a read-only server unregisters nothing)');
  return {
    strategy: strategy === undefined ? undefined : parseStrategy(strategy, '--strategy'),
    staticTimeoutMs:
      staticTimeout === undefined
        ? undefined
        : parseDuration(staticTimeout, '--static-timeout', {
            least: [1_000, 'at least 1s (whoever registers an instance must have the time to do it again)'],
            most: [2_592_000_000, 'at most 720h'],
          }),
  };
}

async function serve(
  zookeeper: ZooKeeper,
  { readOnly, bearerTokenFile, strategy, staticTimeoutMs }: CheckedOptions,
  settings: Settings & { readonly zookeeper: ZooKeeperSettings },
  io: Io,
  signal: AbortSignal,
): Promise<number> {
  const { startDiscoveryServer } = await import('../http/discovery-server.js');
  const log = await loggerFor(settings, io);
  const {
    http,
    zookeeper: { basePath },
  } = settings;
  const server = await startDiscoveryServer({
    zookeeper,
    clock: io.clock,
    random: io.random,
    listen: http ?? DEFAULT_LISTEN_ADDRESS,
    basePath,
    readOnly,
    bearerTokenFile,
    staticTimeoutMs,
    strategy,
    onEvent: discoveryServeLog(log),
    labels: { listen: '--http', bearerTokenFile: '--bearer-token-file' },
  });
  const forget = zookeeper.onState(zookeeperLog(log, zookeeper.description));
  try {
    say(io, server.url);
    log.info(
      { url: server.url, writes: server.writes },
      `serving ${basePath} of ${zookeeper.description} at ${server.url}, ${ACCESS[server.writes]}`,
    );
    const interruption = (await aborted(signal)) as Interrupted;
    log.info({ signal: interruption.signal }, `${interruption.signal}: ending`);
    const gentle = interruption.signal === 'SIGINT' || interruption.signal === 'SIGTERM';
    return gentle ? ExitCode.ok : exitCodeOfSignal(interruption.signal);
  } finally {
    forget();
    await server.close();
  }
}

const ACCESS: Readonly<Record<DiscoveryServer['writes'], string>> = {
  nobody: 'read-only',
  token: 'changes with the token only',
  anybody: 'changes by whoever is on this machine',
};
