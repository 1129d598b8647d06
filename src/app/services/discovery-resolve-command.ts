import { callWithTimeout } from '../../core/base/abort.js';
import { type ZooKeeper, ZooKeeperError } from '../../zookeeper/client/zookeeper.js';
import { DiscoveryResolver } from '../../zookeeper/discovery/discovery-resolver.js';
import { endpointPath } from '../../zookeeper/discovery/layout.js';
import type { OnUnreadable } from '../../zookeeper/services/instance/instance-codec.js';
import { checkServiceName } from '../../zookeeper/services/instance/new-instance.js';
import { jsonPayload } from '../../zookeeper/services/instance/payload-codec.js';
import type { ServiceInstance } from '../../zookeeper/services/instance/service-instance.js';
import { instanceUrl } from '../../zookeeper/services/instance/uri-spec.js';
import { type InstanceSource, ServiceCache } from '../../zookeeper/services/service-cache.js';
import { servicePath } from '../../zookeeper/services/service-path.js';
import { NoInstanceError, ServiceProvider } from '../../zookeeper/services/service-provider.js';
import { parseStrategy } from '../../zookeeper/services/strategies.js';
import { answer, complain, fail } from '../kit/answer.js';
import { onZooKeeper, type ZooKeeperCall } from '../kit/call.js';
import type { Io } from '../kit/io.js';
import { parseEndpointName } from '../settings/zookeeper-settings.js';

/** The options of `discovery resolve`, as they are on the command line. */
interface ResolveOptions {
  readonly kind: 'service' | 'endpoint';
  readonly strategy: string;
}

/**
 * How long the instances may take to be read, in milliseconds: longer than znodes that may not be read delay
 * the others.
 */
const READ_TIMEOUT_MS = 15_000;

/**
 * `nodelease discovery resolve NAME`: prints the URL of one instance, as the strategy picks it. Other
 * programs take it as an argument, so it is an http or https URL, or a Dubbo application's, without user information. Resolves to the
 * exit code: 1 where no instance can be used, with the reason on standard error.
 *
 * @throws {ConfigError} when the name or the strategy is invalid
 */
export async function resolveService(call: ZooKeeperCall<ResolveOptions>, name: string): Promise<number> {
  const { options, settings, io } = call;
  const { clock, random } = io;
  const origin = originOf(name, options.kind, settings.zookeeper.basePath, io);
  const strategy = parseStrategy(options.strategy);
  return onZooKeeper(call, async (zookeeper, signal) => {
    // A refused watch is tried again and again; a request fails with the reason.
    await zookeeper.children(origin.path, { signal });
    let trouble: string | undefined;
    const source = origin.open(zookeeper, (path, problem) => {
      trouble = `${path} ${problem}`;
      complain(io, `warning: ${trouble}: ignored`);
    });
    try {
      const unread = () => {
        signal.throwIfAborted();
        const why = trouble ?? ('problem' in zookeeper.state ? zookeeper.state.problem : undefined);
        const message = `the instances of ${source.name} could not be read within ${READ_TIMEOUT_MS} ms`;
        const because = why === undefined ? '' : `: ${why}`;
        throw new ZooKeeperError(message + because, 'timeout', 'unknown');
      };
      await callWithTimeout({ clock, timeoutMs: READ_TIMEOUT_MS, signal }, () => source.ready).catch(unread);
      const accept = (each: ServiceInstance) => requestableUrl(each) !== undefined;
      const instance = new ServiceProvider({ source, clock, random, strategy, accept }).need();
      const url = String(requestableUrl(instance));
      return answer(call, { report: { ...instance, url }, lines: [url] });
    } catch (error) {
      if (!(error instanceof NoInstanceError)) throw error;
      const refused = source.instances.some(
        (each) => each.enabled && instanceUrl(each) !== undefined && requestableUrl(each) === undefined,
      );
      const why = refused ? ': only http and https URLs without user information are printed' : '';
      return fail(io, error.code, error.message + why);
    } finally {
      source.close();
    }
  });
}

/**
 * The URL of an instance; undefined where a program could take it for more than a URL to request: any client
 * may have written it.
 */
function requestableUrl(instance: ServiceInstance): string | undefined {
  const url = instanceUrl(instance);
  // Programs differ about the end of a host: nothing that one of them could take for user information, or for
  // several arguments.
  const isPlain =
    url !== undefined &&
    /^(?:https?|dubbo|tri):\/\/[^/?#@]+(?:[/?#]|$)/i.test(url) &&
    !/[\\\s\p{Cc}\p{Cf}]/u.test(url);
  return isPlain && URL.canParse(url) ? url : undefined;
}

/**
 * Where the instances come from, and the parent znode of them.
 * @throws {ConfigError} when the name is invalid
 */
function originOf(name: string, kind: ResolveOptions['kind'], basePath: string, { clock, random }: Io) {
  if (kind === 'service') {
    checkServiceName(name, 'name');
    return {
      path: servicePath(basePath, name),
      open: (zookeeper: ZooKeeper, onUnreadable: OnUnreadable): InstanceSource =>
        new ServiceCache({ zookeeper, clock, basePath, name, payload: jsonPayload, onUnreadable }),
    };
  }
  const { endpoint, key } = parseEndpointName({ text: name, label: 'name', flag: true });
  return {
    path: endpointPath(endpoint, key),
    open: (zookeeper: ZooKeeper, onUnreadable: OnUnreadable): InstanceSource =>
      new DiscoveryResolver({ zookeeper, clock, random, onUnreadable }).instances(endpoint, key),
  };
}
