import { checkArguments, checked, checkKnown, FLAG, FUNCTION, maybe } from '../../../core/base/arguments.js';
import type { Clock, RandomSource } from '../../../core/base/clock.js';
import { ConfigError } from '../../../core/base/errors.js';
import { shareAnswer } from '../../../core/base/share-answer.js';
import {
  DEFAULT_LISTEN_ADDRESS,
  formatListenAddress,
  isLoopback,
  type ListenAddress,
} from '../../../core/settings/listen-address.js';
import type { ZooKeeper } from '../../../zookeeper/client/zookeeper.js';
import { UnreadableReports } from '../../../zookeeper/services/instance/instance-codec.js';
import { jsonPayload } from '../../../zookeeper/services/instance/payload-codec.js';
import { ServiceCache } from '../../../zookeeper/services/service-cache.js';
import { ServiceDirectory } from '../../../zookeeper/services/service-directory.js';
import { checkBasePath, DEFAULT_BASE_PATH, servicePath } from '../../../zookeeper/services/service-path.js';
import { ServiceProvider } from '../../../zookeeper/services/service-provider.js';
import type { StrategyFactory } from '../../../zookeeper/services/strategies.js';
import type { MetricsText } from '../../http/node-app.js';
import { BearerTokenFile, pageAccess, type WriteAccess, writeAccess } from '../../http/server/access.js';
import { listen } from '../../http/server/listen.js';
import { OpenStreams } from '../../http/server/open-streams.js';
import { discoveryApp } from './discovery-app.js';
import { ProviderPool } from './provider-pool.js';

/** What a discovery server reports. */
export type DiscoveryServerEvent =
  /** A request failed through no fault of the client: it was answered with a status of 500 or above. */
  | { readonly type: 'request-failed'; readonly request: string; readonly error: unknown }
  /** An instance is left out everywhere; `problem` is the rest of the sentence "<path> …". */
  | { readonly type: 'unreadable'; readonly path: string; readonly problem: string };

/** Settings of {@link startDiscoveryServer}. */
export interface DiscoveryServerOptions {
  readonly zookeeper: ZooKeeper;
  readonly clock: Clock;
  readonly random: RandomSource;
  /** @default 127.0.0.1, port 7070 */
  readonly listen?: ListenAddress | undefined;
  /** The parent of all services, within the chroot. @default "/services" */
  readonly basePath?: string | undefined;
  /** Whether no client may register and unregister instances. @default false */
  readonly readOnly?: boolean | undefined;
  /**
   * Whether the page at `/` may enable, disable and remove instances, with the token of `bearerTokenFile`,
   * which is needed then.
   * @default false
   */
  readonly allowWrites?: boolean | undefined;
  /**
   * A file with the token for writes, read again for each. Needed to listen beyond loopback, unless the
   * server is read-only.
   * @default none
   */
  readonly bearerTokenFile?: string | undefined;
  /** What `/metrics` answers. @default it is absent */
  readonly metrics?: MetricsText | undefined;
  /** How `v1/anyservice` chooses. @default round robin */
  readonly strategy?: StrategyFactory | undefined;
  /** Must not throw and must not block. */
  readonly onEvent?: ((event: DiscoveryServerEvent) => void) | undefined;
  /** What the settings are called in errors. @default "listen", "bearerTokenFile" and "allowWrites" */
  readonly labels?:
    | { readonly listen: string; readonly bearerTokenFile: string; readonly allowWrites: string }
    | undefined;
}

/** A discovery server that answers. */
export interface DiscoveryServer {
  /** `http://…`, without a slash at the end. */
  readonly url: string;
  /** Which clients may change anything. */
  readonly writes: WriteAccess['kind'];
  /**
   * Ends within a second or so. The session with ZooKeeper stays, and so does what was registered. Never
   * rejects; idempotent.
   */
  close(): Promise<void>;
}

const NAMES = [
  'zookeeper',
  'clock',
  'random',
  'listen',
  'basePath',
  'readOnly',
  'allowWrites',
  'bearerTokenFile',
  'metrics',
  'strategy',
  'onEvent',
  'labels',
] satisfies (keyof DiscoveryServerOptions)[];
const LABELS = { listen: 'listen', bearerTokenFile: 'bearerTokenFile', allowWrites: 'allowWrites' };

/**
 * Starts a discovery server: `discoveryApp` on its own port. Resolves once it listens, whether ZooKeeper
 * is there or not.
 *
 * @throws {ConfigError} when it cannot listen there, others could change anything without a token, or the
 * token file holds none
 */
export async function startDiscoveryServer(options: DiscoveryServerOptions): Promise<DiscoveryServer> {
  // A misspelt `readOnly` would let all clients of the machine write.
  checkKnown(options, NAMES);
  const {
    zookeeper,
    clock,
    random,
    listen: at = DEFAULT_LISTEN_ADDRESS,
    basePath = DEFAULT_BASE_PATH,
    readOnly,
    allowWrites,
    bearerTokenFile,
    metrics,
    strategy,
    onEvent,
    labels = LABELS,
  } = checked(options, {
    readOnly: maybe(FLAG),
    allowWrites: maybe(FLAG),
    strategy: maybe(FUNCTION),
  });
  checkArguments({ zookeeper, clock, random });
  checkBasePath(basePath);
  const token =
    bearerTokenFile === undefined
      ? undefined
      : await BearerTokenFile.open(bearerTokenFile, labels.bearerTokenFile);
  const writes = writeAccess(at, { readOnly, token }, labels.listen);
  if (allowWrites && readOnly)
    throw new ConfigError(labels.allowWrites, true, 'a server that is not read-only');
  const pageWrites = pageAccess(allowWrites, token, labels.allowWrites);
  const streams = new OpenStreams();

  // Queries and caches meet the same znodes: each is reported once.
  const onUnreadable = new UnreadableReports((path, problem) =>
    onEvent?.({ type: 'unreadable', path, problem }),
  );
  const tree = { zookeeper, clock, basePath, payload: jsonPayload, onUnreadable };
  const directory = new ServiceDirectory(tree);
  const pool = new ProviderPool({
    clock,
    // Without a watch.
    exists: async (name, call) => (await zookeeper.read(servicePath(basePath, name), call)) !== undefined,
    open: (name) =>
      new ServiceProvider({ source: new ServiceCache({ ...tree, name }), clock, random, strategy }),
  });
  const app = discoveryApp({
    directory,
    pool,
    clock,
    writes,
    streams,
    metrics,
    page: { zookeeper, basePath, writes: pageWrites },
    connected: (call) => zookeeper.whenConnected(call),
    ...(isLoopback(at.host) && { hosts: new Set([at.host.toLowerCase()]) }),
    onFailure: (request, error) => onEvent?.({ type: 'request-failed', request, error }),
  });
  const listener = await listen({ fetch: (request) => app.fetch(request), at, label: labels.listen, clock });
  if (writes.kind === 'anybody' && !isLoopback(listener.address.host)) {
    await listener.close();
    throw new ConfigError(
      labels.listen,
      formatListenAddress(at),
      'a name that means loopback (this one has another address)',
    );
  }
  const close = async () => {
    streams.endAll();
    await listener.close();
    pool.close();
  };
  return { url: listener.url, writes: writes.kind, close: shareAnswer(close) };
}
