import type { InstanceSource } from './instance-source.js';
import type { ServiceInstance } from './service-instance.js';

/** A list of one's own as a source: for instances that no ZooKeeper knows of, and for tests. Nothing is checked, and nothing ever changes. */
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
