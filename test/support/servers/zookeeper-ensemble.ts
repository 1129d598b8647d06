import { setTimeout as sleep } from 'node:timers/promises';
import { freePorts } from './free-ports.js';
import {
  startZooKeeperProcess,
  type ZooKeeperProcess,
  type ZooKeeperProcessOptions,
} from './zookeeper-process.js';

const ELECTED_WITHIN_MS = 30_000;

/** Servers that make one service, each under a test's control. */
export interface ZooKeeperEnsemble {
  /** All of the servers, `127.0.0.1:PORT,127.0.0.1:PORT,…`. */
  readonly connect: string;
  readonly servers: readonly ZooKeeperProcess[];
  /**
   * Resolves to the server that leads, as soon as one does.
   *
   * @throws Error when none does within 30 s
   */
  leader(): Promise<ZooKeeperProcess>;
  /**
   * Resolves as soon as every server that runs serves clients.
   *
   * @throws Error when that does not come within 30 s
   */
  whenServing(): Promise<void>;
  /** Ends all of them for good and removes their folders. Idempotent. */
  stop(): Promise<void>;
}

/**
 * Starts an ensemble of servers of the local package; all of them serve when it resolves.
 *
 * @throws Error when they do not get ready, or when there is no local package
 */
export async function startEnsemble(
  size = 3,
  options: Omit<ZooKeeperProcessOptions, 'port' | 'dataDir' | 'memberId'> = {},
): Promise<ZooKeeperEnsemble> {
  const attempts = 3;
  for (let attempt = 1; ; attempt += 1) {
    try {
      return await startOnce(size, options);
    } catch (error) {
      // Between finding free ports and the servers' binding them somebody else may have taken one.
      if (attempt === attempts) throw error;
    }
  }
}

async function startOnce(size: number, options: ZooKeeperProcessOptions): Promise<ZooKeeperEnsemble> {
  const ports = await freePorts(3 * size);
  const members = Array.from({ length: size }, (_, index) => {
    const [client = 0, quorum, election] = ports.slice(3 * index, 3 * index + 3);
    return { id: index + 1, client, address: `127.0.0.1:${quorum}:${election}` };
  });
  // In ticks: how long a server may take to join the leader, and may be silent before the leader gives it up.
  const limits = { initLimit: '20', syncLimit: '6' };
  const addresses = Object.fromEntries(members.map(({ id, address }) => [`server.${id}`, address]));
  const settings = { ...limits, ...addresses, ...options.settings };
  const starts = await Promise.allSettled(
    members.map(({ id, client }) =>
      startZooKeeperProcess({ ...options, port: client, memberId: id, settings }),
    ),
  );
  const servers = starts.flatMap((start) => (start.status === 'fulfilled' ? [start.value] : []));
  const ensemble: ZooKeeperEnsemble = {
    connect: servers.map(({ connect }) => connect).join(','),
    servers,
    leader: () =>
      until(`leader among ${ensemble.connect}`, async () => {
        const modes = await Promise.all(servers.map((server) => server.mode()));
        return servers[modes.indexOf('leader')];
      }),
    whenServing: async () => {
      await until(`service of ${ensemble.connect}`, async () => {
        const running = servers.filter(({ pid }) => pid !== undefined);
        const modes = await Promise.all(running.map((server) => server.mode()));
        return modes.length > 0 && modes.every(Boolean) ? true : undefined;
      });
    },
    stop: async () => {
      await Promise.all(servers.map((server) => server.dispose()));
    },
  };
  try {
    for (const start of starts) if (start.status === 'rejected') throw start.reason;
    await ensemble.whenServing();
    return ensemble;
  } catch (error) {
    await ensemble.stop();
    throw error;
  }
}

async function until<T>(what: string, ask: () => Promise<T | undefined>): Promise<T> {
  const deadline = performance.now() + ELECTED_WITHIN_MS;
  while (performance.now() < deadline) {
    const answer = await ask();
    if (answer !== undefined) return answer;
    await sleep(25);
  }
  throw new Error(`no ${what} within ${ELECTED_WITHIN_MS} ms`);
}
