import { checkArguments, having } from '../../../core/base/arguments.js';
import type { ServiceInstance } from '../instance/service-instance.js';
import { instanceUrl } from '../instance/uri-spec.js';
import { isOffered, NoInstanceError } from '../service-provider.js';

/** The part of a provider, such as `ServiceProvider`, that routing needs. */
export interface InstancePicker<P = unknown> {
  /** The service, for people, and by default the host name in the URLs that are meant for it. */
  readonly name: string;

  /**
   * All known instances, also the ones that are never picked; read when a picked one has no usable target.
   * @default not known
   */
  readonly instances?: readonly ServiceInstance<P>[];

  /**
   * One instance to send work to, which is not in `except`; undefined without one. Returns at once, without
   * input or output.
   */
  pick(except?: ReadonlySet<ServiceInstance<P>>): ServiceInstance<P> | undefined;

  /**
   * Like `pick`, for callers that cannot continue without an instance.
   * @throws NoInstanceError when there is none, with the known facts
   */
  need?(except?: ReadonlySet<ServiceInstance<P>>): ServiceInstance<P>;

  /** The instance has failed. */
  noteError(instance: ServiceInstance<P>): void;
}

/** Where the requests to an instance go. */
export interface InstanceTarget {
  /** Scheme, host and port, as in `https://10.0.0.5:8443`. */
  readonly origin: string;
  readonly protocol: 'http:' | 'https:';
  /** A host name or an IP address, without the brackets of IPv6. */
  readonly hostname: string;
  readonly port: number;
  /**
   * The prefix of the path of every request: empty, or for example `/api` from the instance's uriSpec. Never
   * ends with a slash.
   */
  readonly basePath: string;
}

/** A further condition of a target. */
export type TargetCondition = (target: InstanceTarget) => boolean;

/**
 * Maximum number of instances without a usable target that are skipped if the picker does not list all
 * instances.
 */
const MAX_PASSED_OVER = 64;
const EMPTY_PORT = /^[^/]*\/\/[^/?#]*:(?:[/?#]|$)/;

/** Instances are values: a target that was made of one stays right. */
const targets = new WeakMap<ServiceInstance, InstanceTarget | 'none'>();

/**
 * Where an instance is, by its uriSpec, or else its TLS port, or else its port.
 * @returns undefined where that is no http(s) URL
 */
export function targetOf(instance: ServiceInstance): InstanceTarget | undefined {
  const target = targets.get(instance) ?? parseTarget(instanceUrl(instance), instance) ?? 'none';
  targets.set(instance, target);
  return target === 'none' ? undefined : target;
}

/**
 * Picks an instance with a usable target.
 *
 * @param tried instances that are not picked; grows by those without a usable target
 * @param fits a further condition of the target
 */
export function pickTarget<P>(
  picker: InstancePicker<P>,
  tried: Set<ServiceInstance<P>>,
  fits: TargetCondition = () => true,
): { readonly instance: ServiceInstance<P>; readonly target: InstanceTarget } | undefined {
  for (let passedOver = 0; passedOver < MAX_PASSED_OVER; passedOver += 1) {
    const instance = tried.size ? picker.pick(tried) : picker.pick();
    // A picker that does not heed `tried` must not keep this loop running.
    if (instance === undefined || tried.has(instance)) return undefined;
    const target = targetOf(instance);
    if (target && fits(target)) return { instance, target };
    tried.add(instance);
    // The next one is the picker's choice among the others, if there are any.
    for (const useless of picker.instances ?? []) if (!isUsable(useless, fits)) tried.add(useless);
  }
  return undefined;
}

/** Why no instance was picked. `tried` and `fits` are those of {@link pickTarget}. */
export function noInstance<P>(
  picker: InstancePicker<P>,
  tried: ReadonlySet<ServiceInstance<P>>,
  fits: TargetCondition = () => true,
): NoInstanceError {
  const { name, instances = [] } = picker;
  try {
    picker.need?.(tried);
  } catch (error) {
    if (!(error instanceof NoInstanceError) || error.facts === undefined) return new NoInstanceError(name);
    const { facts } = error;
    // The picker does not know that nothing can be sent to some of its instances.
    const useless = instances.filter((instance) => isOffered(instance) && !isUsable(instance, fits)).length;
    const unacceptable = Math.max(facts.unacceptable, useless);
    const down = Math.min(facts.down, Math.max(0, facts.known - facts.disabled - unacceptable));
    return new NoInstanceError(error.service, { ...facts, unacceptable, down });
  }
  return new NoInstanceError(name);
}

function isUsable(instance: ServiceInstance, fits: TargetCondition) {
  const target = targetOf(instance);
  return target !== undefined && fits(target);
}

function parseTarget(
  text: string | undefined,
  instance: Partial<Pick<ServiceInstance, 'port' | 'sslPort'>>,
): InstanceTarget | undefined {
  if (text === undefined || !URL.canParse(text)) return undefined;
  const { protocol, hostname, port: written, pathname } = new URL(text);
  if (protocol !== 'http:' && protocol !== 'https:') return undefined;
  const isSecure = protocol === 'https:';
  // A uriSpec leaves a port empty that the instance does not have: `{port}` for one that has none but for
  // TLS.
  const usual = EMPTY_PORT.test(text) ? (isSecure ? instance.sslPort : instance.port) : isSecure ? 443 : 80;
  const port = written === '' ? usual : Number(written);
  if (port === undefined) return undefined;
  return {
    origin: `${protocol}//${hostname}:${port}`,
    protocol,
    hostname: hostname.startsWith('[') ? hostname.slice(1, -1) : hostname,
    port,
    basePath: pathname.replace(/\/+$/, ''),
  };
}

/** The part of a shard router that routing needs. */
export interface KeyOwners<K> {
  /** The owner of a key's shard; undefined while the shard has none. */
  nodeFor(key: K): { readonly address: string | undefined } | undefined;
}

/**
 * Picks the instance that owns a key's shard, for `serviceDispatcher`: the one whose host and port are
 * the `address` that its node gave to `ownShards`. No other instance is tried.
 *
 * ```ts
 * await fetch(url, { dispatcher: serviceDispatcher(ownerOf(provider, router, 'customer-17')) });
 * ```
 *
 * The answer may be old: a node that does not own the key answers 421. Call `router.refresh()` then.
 */
export function ownerOf<K, P>(
  provider: Required<InstancePicker<P>>,
  owners: KeyOwners<K>,
  key: K,
): InstancePicker<P> {
  checkArguments(
    { provider, owners },
    { owners: having('owners, such as shardRouter() returns', 'nodeFor') },
  );
  return {
    name: provider.name,
    pick(except) {
      const address = owners.nodeFor(key)?.address;
      // IPv6 may be without its brackets.
      const node = parseTarget(address && `http://${address.replace(/^([^[].*:.*):/, '[$1]:')}`, {});
      const owner = provider.instances.find((instance) => {
        const target = targetOf(instance);
        return node && isOffered(instance) && target?.hostname === node.hostname && target.port === node.port;
      });
      return owner && !except?.has(owner) ? owner : undefined;
    },
    noteError: (instance) => provider.noteError(instance),
  };
}
