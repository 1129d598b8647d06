import { parseEndpointName } from '../config/endpoints.js';
import type { Settings, ZooKeeperSettings } from '../config.js';
import { DiscoveryResolver } from '../discovery/discovery-resolver.js';
import type { InstanceSource } from '../discovery/services/instance-source.js';
import { checkServiceName } from '../discovery/services/new-instance.js';
import { NoInstanceError } from '../discovery/services/no-instance-error.js';
import { jsonPayload } from '../discovery/services/payload-codec.js';
import { ServiceCache } from '../discovery/services/service-cache.js';
import type { ServiceInstance } from '../discovery/services/service-instance.js';
import { ServiceProvider } from '../discovery/services/service-provider.js';
import { parseStrategy } from '../discovery/services/strategies/parse-strategy.js';
import { instanceUrl } from '../discovery/services/uri-spec.js';
import { ConfigError } from '../errors.js';
import type { ZooKeeper } from '../zookeeper/zookeeper.js';
import { ZooKeeperError } from '../zookeeper/zookeeper-error.js';
import { ExitCode } from './exit-codes.js';
import type { Io } from './io.js';
import { complain, say } from './store-command.js';
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

/** How long the instances may take to be read, in milliseconds, once there is a connection. */
const READ_LIMIT_MS = 5_000;
/** Nobody is there who could be sent a request. */
const NOBODY = 1;

/**
 * `nodelease discovery resolve NAME`: prints the URL of one instance, as the strategy picks it. Resolves to the exit code: 1 where there is
 * none that could be used, which has been said on standard error by then.
 *
 * @throws {ConfigError} when the name, the kind or the strategy is none
 */
export async function resolveDiscoveryCommand(options: ResolveOptions, settings: DiscoverySettings, io: Io): Promise<number> {
  const open = sourceOf(options, settings.zookeeper.basePath, io);
  const strategy = parseStrategy(options.strategy);
  return onZooKeeper(settings, io, async (zookeeper, signal) => {
    await zookeeper.whenConnected({ signal });
    const source = open(zookeeper);
    try {
      await read(source, io, signal);
      const { clock, random } = io;
      const hasUrl = (instance: ServiceInstance) => instanceUrl(instance) !== undefined;
      const provider = new ServiceProvider({ source, clock, random, strategy, accept: hasUrl });
      const instance = provider.need();
      const url = instanceUrl(instance);
      if (options.json) io.stdout(`${JSON.stringify({ ...instance, url })}\n`);
      else say(io, String(url));
      return ExitCode.ok;
    } catch (error) {
      if (!(error instanceof NoInstanceError)) throw error;
      complain(io, error.message);
      return NOBODY;
    } finally {
      source.close();
    }
  });
}

/** @throws {ConfigError} when the name or the kind is none */
function sourceOf({ name, kind }: ResolveOptions, basePath: string, io: Io): (zookeeper: ZooKeeper) => InstanceSource {
  const { clock, random } = io;
  const onUnreadable = (path: string, problem: string) => complain(io, `warning: ${path} ${problem}: ignored`);
  if (kind === 'service') {
    checkServiceName(name, 'name');
    return (zookeeper) => new ServiceCache({ zookeeper, clock, basePath, name, payload: jsonPayload, onUnreadable });
  }
  if (kind !== 'endpoint') throw new ConfigError('--kind', kind, 'service or endpoint');
  const place = parseEndpointName({ text: name, label: 'name', flag: true });
  return (zookeeper) => new DiscoveryResolver({ zookeeper, clock, random, onUnreadable }).instances(place.endpoint, place.key);
}

/** Waits until the instances have been read for the first time. */
async function read(source: InstanceSource, { clock }: Io, signal: AbortSignal): Promise<void> {
  const over = new AbortController();
  const either = AbortSignal.any([signal, over.signal]);
  const late = clock.sleep(READ_LIMIT_MS, either).then(
    () => 'late',
    () => undefined,
  );
  const first = await Promise.race([source.ready, late]);
  over.abort();
  signal.throwIfAborted();
  if (first !== 'late') return;
  throw new ZooKeeperError(`the instances of ${source.name} could not be read within ${READ_LIMIT_MS} ms`, {
    fault: 'timeout',
    outcome: 'unknown',
  });
}
