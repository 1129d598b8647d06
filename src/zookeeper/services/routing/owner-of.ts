import { checkArguments, having } from '../../../core/base/arguments.js';
import { isOffered } from '../service-provider.js';
import { type InstancePicker, targetOf } from './instance-target.js';

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
      const owner = provider.instances.find((instance) => {
        const { hostname, port } = targetOf(instance) ?? {};
        return isOffered(instance) && `${hostname}:${port}` === address;
      });
      return owner && !except?.has(owner) ? owner : undefined;
    },
    noteError: (instance) => provider.noteError(instance),
  };
}
