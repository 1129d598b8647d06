import { formatListenAddress, parseListenAddress } from '../../core/settings/listen-address.js';
import { say } from '../kit/answer.js';
import {
  type Call,
  connectTo,
  interruptible,
  interruption,
  isVisible,
  logEnd,
  reported,
} from '../kit/call.js';
import { UsageError } from '../kit/io.js';
import { loggerFor } from '../kit/log/logger.js';
import { zookeeperLog } from '../kit/log/zookeeper-log.js';
import { openDns } from './open-dns.js';

/**
 * `nodelease dns`: answers DNS until a signal ends it: 0 for SIGINT and SIGTERM. The address is the answer,
 * on one line of standard output. It starts without ZooKeeper and the store, too, and answers SERVFAIL then.
 *
 * @throws {ConfigError} when it cannot listen there
 */
export function dnsCommand(call: Call<{ readonly listen: string }>): Promise<number> {
  const { settings, options, io } = call;
  const listen = parseListenAddress(options.listen, '--listen');
  if (settings.zookeeper === undefined && !isVisible(settings))
    throw new UsageError(
      'nothing to answer from: expected --zookeeper HOST:PORT[,HOST:PORT]...[/CHROOT], --store s3://bucket/prefix, or both',
    );
  const work = async (interrupted: AbortSignal) => {
    const log = await loggerFor(settings, io);
    const connect: typeof connectTo = async (...to) => {
      const zookeeper = await connectTo(...to);
      zookeeper.onState(zookeeperLog(log, zookeeper.description));
      return zookeeper;
    };
    const dns = await openDns({ listen, label: '--listen', settings, io, log, connect });
    try {
      const { http, bearerTokenFile } = settings;
      const { startNodeServer } = await import('../http/node-server.js');
      const labels = { listen: '--http', bearerTokenFile: '--bearer-token-file' };
      const { metrics } = dns;
      const server =
        http && (await startNodeServer({ listen: http, bearerTokenFile, labels, clock: io.clock, metrics }));
      if (server) log.info({ url: server.url }, `the metrics are at ${server.url}/metrics`);
      say(io, formatListenAddress(dns.address));
      const end = await interruption(interrupted);
      await server?.close();
      return logEnd(end, log);
    } finally {
      await dns.close();
    }
  };
  return reported(call, () => interruptible(io, work));
}
