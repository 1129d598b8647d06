import type { Clock, RandomSource } from '../clock.js';
import { ConfigError } from '../errors.js';
import { DEFAULT_LISTEN_ADDRESS, type ListenAddress } from '../http/listen-address.js';
import { type NodeServer, startNodeServer } from '../http/node-server.js';
import type { StoreSession } from '../lease/store-session.js';
import { ClusterFollower } from '../monitor/cluster-follower.js';
import { reachableUrl } from './reachable-url.js';

/** The console of a demo, for a browser. */
export interface DemoConsole {
  /** Without a slash at the end. */
  readonly url: string;
  /** Ends within a second or so. Never rejects. */
  close(): Promise<void>;
}

/** Where a {@link DemoConsole} listens, and what it looks at. */
export interface DemoConsoleOptions {
  /** Undefined for the usual address, or any other port of it while that is taken. */
  readonly at: ListenAddress | undefined;
  readonly session: StoreSession;
  readonly clock: Clock;
  readonly random: RandomSource;
}

/**
 * Serves the console. Resolves once it listens.
 *
 * @throws {ConfigError} when it cannot listen where it was asked to
 */
export async function openDemoConsole({ at, session, clock, random }: DemoConsoleOptions): Promise<DemoConsole> {
  const view = new ClusterFollower({ clock, random, session });
  const start = (listen: ListenAddress) => startNodeServer({ listen, clock, cluster: async () => view, labels: LABELS });
  const server = at === undefined ? await startSomewhere(start) : await start(at);
  return {
    url: reachableUrl(server.address),
    close: async () => {
      await server.close();
      await view.close();
    },
  };
}

const LABELS = { listen: '--http', bearerTokenFile: '--bearer-token-file' };

/** Nobody asked for the usual port: any other one does as well. */
async function startSomewhere(start: (at: ListenAddress) => Promise<NodeServer>): Promise<NodeServer> {
  try {
    return await start(DEFAULT_LISTEN_ADDRESS);
  } catch (error) {
    if (!(error instanceof ConfigError)) throw error;
    return start({ ...DEFAULT_LISTEN_ADDRESS, port: 0 });
  }
}
