import type { ServiceInstance } from './service-instance.js';

/**
 * Where the instances of a service come from: a cache of Curator's tree, the providers of an endpoint, a
 * fixed list.
 */
export interface InstanceSource<P = unknown> {
  /** What the instances have in common, for people: a service's name. */
  readonly name: string;
  /**
   * The instances that were seen last, disabled ones included, in a stable order. The same array until they
   * change, then another.
   */
  readonly instances: readonly ServiceInstance<P>[];
  /**
   * Resolves once they have been read for the first time. Never rejects, and never resolves when closed
   * before.
   */
  readonly ready: Promise<void>;
  /**
   * Undefined while all has been read since the last gap, so that every change is seen; otherwise since when
   * it has not, in milliseconds on the monotonic clock. Until then `instances` was right.
   */
  readonly stale: { readonly since: number } | undefined;
  /**
   * Calls `listener` after every change, with the new instances, until the returned function is called.
   * Listeners must not throw.
   */
  onChange(listener: (instances: readonly ServiceInstance<P>[]) => void): () => void;
  /** Follows no changes any more. What was seen last can still be asked for. Idempotent. */
  close(): void;
}

/**
 * A fixed list as a source: for instances that no ZooKeeper knows of, and for tests. Nothing is checked, and
 * nothing ever changes.
 */
export function fixedInstances<P>(name: string, instances: readonly ServiceInstance<P>[]): InstanceSource<P> {
  return {
    name,
    instances: [...instances],
    ready: Promise.resolve(),
    stale: undefined,
    onChange: () => () => {},
    close: () => {},
  };
}
