import { withTimeout } from '../base/abort.js';
import { parseEndpointName } from '../config/endpoints.js';
import type { Settings, ZooKeeperSettings } from '../config.js';
import { DiscoveryResolver } from '../discovery/discovery-resolver.js';
import type { InstanceSource } from '../discovery/services/instance-source.js';
import { checkServiceName } from '../discovery/services/new-instance.js';
import { NoInstanceError } from '../discovery/services/no-instance-error.js';
import { jsonPayload } from '../discovery/services/payload-codec.js';
import { ServiceCache } from '../discovery/services/service-cache.js';
import type { ServiceInstance } from '../discovery/services/service-instance.js';
import { servicePath } from '../discovery/services/service-path.js';
import { ServiceProvider } from '../discovery/services/service-provider.js';
import { parseStrategy } from '../discovery/services/strategies/parse-strategy.js';
import type { OnUnreadable } from '../discovery/services/unreadable-reports.js';
import { instanceUrl } from '../discovery/services/uri-spec.js';
import { endpointPath } from '../discovery/tree-paths.js';
import { ConfigError } from '../errors.js';
import type { SessionState } from '../zookeeper/session-state.js';
import type { ZooKeeper } from '../zookeeper/zookeeper.js';
import { ZooKeeperError } from '../zookeeper/zookeeper-error.js';
import { ExitCode } from './exit-codes.js';
import type { Io } from './io.js';
import { complain, say } from './store-command.js';
import { jsonLine } from './text.js';
import { onZooKeeper } from './zookeeper-command.js';

/** What is to be resolved, as the command line has it. */
export interface ResolveOptions {
  /** The service, or `NAME[:KEY]` of an endpoint. */
  readonly name: string;
  /** `service` or `endpoint`. */
  readonly kind: string;
  readonly strategy: string;
  readonly json: boolean;
}

type DiscoverySettings = Settings & { readonly zookeeper: ZooKeeperSettings };

/** Where instances come from. */
interface Place {
  /** The znode whose children they are. */
  readonly path: string;
  readonly open: (zookeeper: ZooKeeper, onUnreadable: OnUnreadable) => InstanceSource;
}

/**
 * How long the instances may take to be read, in milliseconds, once there is a connection: longer than those hold it up that refuse to be read,
 * so that the others are told.
 */
const READ_LIMIT_MS = 15_000;

/**
 * `nodelease discovery resolve NAME`: prints the URL of one instance, as the strategy picks it. What is printed is meant for other programs'
 * arguments: only http and https URLs without user information. Resolves to the exit code: 1 where there is none that could be used, which has
 * been said on standard error by then.
 *
 * @throws {ConfigError} when the name, the kind or the strategy is none
 */
export async function resolveDiscoveryCommand(options: ResolveOptions, settings: DiscoverySettings, io: Io): Promise<number> {
  const place = placeOf(options, settings.zookeeper.basePath, io);
  const strategy = parseStrategy(options.strategy);
  return onZooKeeper(settings, io, async (zookeeper, signal) => {
    await zookeeper.whenConnected({ signal });
    // A watch that is refused is tried again and again: a question says why.
    await zookeeper.children(place.path, { signal });
    let trouble: string | undefined;
    const source = place.open(zookeeper, (path, problem) => {
      trouble = `${path} ${problem}`;
      complain(io, `warning: ${trouble}: ignored`);
    });
    try {
      await read(source, io, signal, () => trouble ?? problemOf(zookeeper.state));
      const { clock, random } = io;
      const accept = (instance: ServiceInstance) => requestableUrl(instance) !== undefined;
      const provider = new ServiceProvider({ source, clock, random, strategy, accept });
      const instance = provider.need();
      const url = String(requestableUrl(instance));
      if (options.json) io.stdout(jsonLine({ ...instance, url }));
      else say(io, url);
      return ExitCode.ok;
    } catch (error) {
      if (!(error instanceof NoInstanceError)) throw error;
      const refused = source.instances.some(
        (each) => each.enabled && instanceUrl(each) !== undefined && requestableUrl(each) === undefined,
      );
      complain(io, `${error.message}${refused ? ': only http and https URLs without user information are printed' : ''}`);
      return ExitCode.nothing;
    } finally {
      source.close();
    }
  });
}

/** The URL of an instance, where whatever is given it can only send a request there; undefined otherwise: anybody may have written it. */
function requestableUrl(instance: ServiceInstance): string | undefined {
  const url = instanceUrl(instance);
  // Programs differ about what ends a host: nothing that any of them could take for user information, or for several arguments.
  const isPlain = url !== undefined && /^https?:\/\/[^/?#@]+(?:[/?#]|$)/i.test(url) && !/[\\\s\p{Cc}\p{Cf}]/u.test(url);
  return isPlain && URL.canParse(url) ? url : undefined;
}

/** @throws {ConfigError} when the name or the kind is none */
function placeOf({ name, kind }: ResolveOptions, basePath: string, io: Io): Place {
  const { clock, random } = io;
  if (kind === 'service') {
    checkServiceName(name, 'name');
    return {
      path: servicePath(basePath, name),
      open: (zookeeper, onUnreadable) => new ServiceCache({ zookeeper, clock, basePath, name, payload: jsonPayload, onUnreadable }),
    };
  }
  if (kind !== 'endpoint') throw new ConfigError('--kind', kind, 'service or endpoint');
  const { endpoint, key } = parseEndpointName({ text: name, label: 'name', flag: true });
  return {
    path: endpointPath(endpoint, key),
    open: (zookeeper, onUnreadable) => new DiscoveryResolver({ zookeeper, clock, random, onUnreadable }).instances(endpoint, key),
  };
}

function problemOf(state: SessionState): string | undefined {
  return 'problem' in state ? state.problem : undefined;
}

/** Waits until the instances have been read for the first time. */
async function read(source: InstanceSource, { clock }: Io, signal: AbortSignal, trouble: () => string | undefined): Promise<void> {
  const ready = source.ready.then(() => true);
  if (await withTimeout(clock, READ_LIMIT_MS, ready, signal)) return;
  const why = trouble();
  const message = `the instances of ${source.name} could not be read within ${READ_LIMIT_MS} ms${why === undefined ? '' : `: ${why}`}`;
  throw new ZooKeeperError(message, { fault: 'timeout', outcome: 'unknown' });
}
