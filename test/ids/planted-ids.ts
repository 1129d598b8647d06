import type { Clock } from '../../src/core/base/clock.js';
import {
  clusterNodeIdOf,
  type IdLayout,
  type IdTime,
  UniqueIdGenerator,
  type UniqueIdsOptions,
} from '../../src/core/id/index.js';
import type { Lease } from '../../src/core/lease/model/lease.js';

/** What a generator can be made to do wrong, each as somebody might well build it. */
export const PLANTS = {
  'wall-clock': 'ids are stamped with the wall clock of their maker',
  'no-bounds':
    'ids are stamped with the time of the store, but without regard to what other tenures may have stamped',
} as const;

export type Plant = keyof typeof PLANTS;

/** A generator of a lease that has a fault: like one of `uniqueIds` but for that. */
export async function plantedIds(
  lease: Lease,
  plant: Plant,
  {
    clock,
    layout,
    lagMs,
    advanceMs,
  }: Pick<UniqueIdsOptions, 'lagMs' | 'advanceMs'> & { readonly clock: Clock; readonly layout: IdLayout },
): Promise<UniqueIdGenerator> {
  const { tenureTime } = lease;
  if (tenureTime === undefined) throw new Error(`node id ${lease.id} has no tenure`);
  await tenureTime.prepare();
  const time: IdTime = {
    now: plant === 'wall-clock' ? () => clock.now() : () => tenureTime.now(),
    after: 0,
    before: () => Number.POSITIVE_INFINITY,
    check: () => tenureTime.check(),
    signal: tenureTime.signal,
  };
  return new UniqueIdGenerator({
    layout,
    node: clusterNodeIdOf(lease.id),
    time,
    clock: tenureTime.clock,
    lagMs,
    advanceMs,
  });
}
