import { checkArguments, listOf, OBJECT } from '../../core/base/arguments.js';
import type { ServiceInstance } from './instance/service-instance.js';

/**
 * Where the instances of a service come from: a cache of Curator's tree, the providers of an endpoint, a
 * fixed list.
 */
export interface InstanceSource<P = unknown> {
  /** The common name of the instances, for people: a service's name. */
  readonly name: string;
  /**
   * The last known instances, including disabled ones, in a stable order. The same array until they change,
   * then another one.
   */
  readonly instances: readonly ServiceInstance<P>[];
  /**
   * Resolves once they have been read for the first time. Never rejects, and never resolves when closed
   * before.
   */
  readonly ready: Promise<void>;
  /**
   * Undefined while everything has been read since the last gap, so that every change is seen; otherwise the
   * beginning of the gap, in milliseconds on the monotonic clock. Until then `instances` was right.
   */
  readonly stale: { readonly since: number } | undefined;
  /**
   * Calls `listener` after every change, with the new instances, until the returned function is called.
   * Listeners must not throw.
   */
  onChange(listener: (instances: readonly ServiceInstance<P>[]) => void): () => void;
  /** Stops following changes. The last state can still be read. Idempotent. */
  close(): void;
}

/**
 * A fixed list as a source: for instances that no ZooKeeper knows of, and for tests. Nothing is checked, and
 * nothing ever changes.
 */
export function fixedInstances<P>(name: string, instances: readonly ServiceInstance<P>[]): InstanceSource<P> {
  checkArguments({ name, instances }, { instances: listOf(OBJECT) });
  return {
    name,
    instances: [...instances],
    ready: Promise.resolve(),
    stale: undefined,
    onChange: (listener) => {
      checkArguments({ listener });
      return () => {};
    },
    close: () => {},
  };
}
