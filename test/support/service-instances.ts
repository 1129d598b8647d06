import type { ServiceInstance } from '../../src/zookeeper/services/instance/service-instance.js';
import type { InstanceSource } from '../../src/zookeeper/services/service-cache.js';

/** An instance of the service `orders` that can be picked. */
export function instanceOf<P = unknown>(
  id: string,
  fields: Partial<ServiceInstance<P>> = {},
): ServiceInstance<P> {
  return {
    name: 'orders',
    id,
    address: '10.0.0.1',
    port: 8080,
    sslPort: undefined,
    payload: undefined,
    registrationTimeUTC: 1_700_000_000_000,
    serviceType: 'DYNAMIC',
    uriSpec: undefined,
    enabled: true,
    ...fields,
  };
}

/** As many instances as are asked for, with the ids `0`, `1`, … */
export function instancesOf<P = unknown>(
  count: number,
  fields: Partial<ServiceInstance<P>> = {},
): ServiceInstance<P>[] {
  return Array.from({ length: count }, (_, index) => instanceOf(String(index), fields));
}

/** Instances that a test sets. */
export class TestSource<P = unknown> implements InstanceSource<P> {
  readonly name = 'orders';
  readonly ready = Promise.resolve();
  stale: { readonly since: number } | undefined;
  closed = 0;
  readonly #listeners = new Set<(instances: readonly ServiceInstance<P>[]) => void>();

  constructor(public instances: readonly ServiceInstance<P>[]) {}

  set(instances: readonly ServiceInstance<P>[]): void {
    this.instances = instances;
    for (const listener of this.#listeners) listener(instances);
  }

  onChange(listener: (instances: readonly ServiceInstance<P>[]) => void): () => void {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  }

  close(): void {
    this.closed += 1;
  }
}

/**
 * Pearson's statistic of what was counted against what was to be expected. With as many degrees of freedom as
 * `expected` has entries less one, a fair draw exceeds the limit of {@link chiSquareLimit} once in a thousand
 * times.
 */
export function chiSquare(counted: readonly number[], expected: readonly number[]): number {
  return counted.reduce(
    (sum, count, index) => sum + (count - (expected[index] as number)) ** 2 / (expected[index] as number),
    0,
  );
}

/** By the approximation of Wilson and Hilferty. */
export function chiSquareLimit(degrees: number): number {
  const z = 3.09;
  return degrees * (1 - 2 / (9 * degrees) + z * Math.sqrt(2 / (9 * degrees))) ** 3;
}
