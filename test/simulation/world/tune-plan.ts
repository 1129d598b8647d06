import type { ClusterTimes } from '../../../src/core/lease/model/cluster-config.js';
import { leastGraceMs } from '../../../src/core/lease/model/lease-state.js';
import type { PlannedFault } from './conditions.js';
import type { Dice } from './dice.js';

/** What an operator gives `nodelease tune`. */
export interface WantedTimes {
  readonly durationMs: number;
  readonly graceMs?: number;
}

const DURATIONS_MS = [3_000, 6_000, 15_000, 20_000] as const;

/**
 * In every fourth seed, which times operators want the cluster to have, one after the other and sometimes at
 * once. The target is the operator's number, `at` a share of the time with faults. The grace covers what the
 * store's servers are apart, and is never less than at first.
 */
export function drawTunes(
  dice: Dice,
  { durationMs, graceMs }: ClusterTimes,
): readonly (PlannedFault & { readonly times: WantedTimes })[] {
  if (!dice.chance(0.25)) return [];
  let at = dice.between(0.02, 0.5);
  return Array.from({ length: 1 + dice.below(8) }, (_, target) => {
    // Not a whole third, sixth or twelfth.
    const other = dice.pick(DURATIONS_MS) - dice.pick([0, 1, 499]);
    const wanted = dice.chance(0.3) ? durationMs : other;
    const more = Math.max(graceMs, leastGraceMs(wanted)) + dice.pick([0, 15, 2_000]);
    const times = { durationMs: wanted, ...(dice.chance(0.4) && { graceMs: more }) };
    const fault = {
      kind: 'tune',
      at,
      lastsMs: dice.magnitude(50, 5_000),
      target,
      chance: dice.next(),
      times,
    } as const;
    at = Math.min(0.95, at + dice.pick([0, dice.magnitude(0.001, 0.05), dice.between(0.05, 0.3)]));
    return fault;
  });
}
