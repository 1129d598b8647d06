import { checked } from '../base/arguments.js';
import type { Clock } from '../base/clock.js';
import { ConfigError } from '../base/errors.js';
import { systemClock } from '../base/system.js';
import { clusterNodeIdOf } from './cluster-node-id.js';
import type { IdLayout } from './id-layout.js';
import { UniqueIdGenerator } from './unique-id-generator.js';

/** Settings of {@link standaloneIds}. */
export interface StandaloneIdsOptions {
  /** The node id, as a lease would give it: 0 … 65527. */
  readonly nodeId: number;
  /**
   * The layout of all nodes of a system, with the same width: 8 bits have room for node ids up to 247, 16 for
   * all.
   */
  readonly layout: IdLayout;
  /** @default the clock of this machine */
  readonly clock?: Clock | undefined;
  /** How much past time a burst may use, in milliseconds, 0 … 3600000. @default 4000 */
  readonly lagMs?: number | undefined;
}

/**
 * A generator without a lease, for a fixed node id, with the same ids and methods. Uniqueness depends on the
 * wall clock, and on no other generator having the node id, in this process either.
 *
 * The times in the ids are later than this call, and never ahead of the clock. So a restarted process repeats
 * no id of its predecessor *as long as the host's clock does not go back between the two*. It may go back by
 * NTP, by hand, or by a move to another host. One generator never repeats an id, whatever the clock does.
 * In the first millisecond there is no id yet: begin with `await nextAsync()`.
 *
 * @throws {ConfigError} when the node id is invalid, or too large for the layout
 */
export function standaloneIds(options: StandaloneIdsOptions): UniqueIdGenerator {
  const { nodeId, layout, clock = systemClock, lagMs = 4_000 } = checked(options);
  const node = clusterNodeIdOf(nodeId);
  const startedAt = clock.now();
  if (!(startedAt > 0)) throw new ConfigError('clock', startedAt, 'a time after the year 1970');
  return new UniqueIdGenerator({
    layout,
    node,
    clock,
    lagMs,
    // Never ahead of the clock: a successor would use a future time again.
    advanceMs: lagMs,
    time: {
      now: () => clock.now(),
      after: Math.floor(startedAt),
      before: () => Number.POSITIVE_INFINITY,
      check: () => undefined,
    },
  });
}
