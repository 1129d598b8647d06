import type { PlannedFault } from './conditions.js';
import type { Dice } from './dice.js';

/**
 * The first node id for which the lowest 8 bits of the cluster node id, all there is at first, are those of
 * node id 0.
 */
export const GROWN_FROM = 256;

export interface ScaleSetting {
  /** How many node ids there are at first, apart from others'. */
  readonly ids: number;
  /** Whether unique ids have to become wider. */
  readonly widens: boolean;
  /** From then on there are no faults. */
  readonly quietAt: number;
}

/**
 * What operators want the cluster's size to be, one after the other and sometimes at once. The target is the
 * operator's number.
 */
export function drawScales(dice: Dice, setting: ScaleSetting): PlannedFault[] {
  const { widens, quietAt } = setting;
  const sizes = widens ? widening(dice, setting) : upAndDown(dice, setting);
  let at = dice.between(0.02, 0.45) * quietAt;
  return sizes.map((size, target): PlannedFault => {
    const fault: PlannedFault = {
      kind: 'scale',
      at,
      lastsMs: dice.magnitude(50, 10_000),
      target,
      chance: dice.next(),
      size,
    };
    // At once, while the one before is busy, or when it is over.
    at = Math.min(at + dice.pick([0, dice.magnitude(10, 3_000), dice.magnitude(500, 15_000)]), 0.9 * quietAt);
    return fault;
  });
}

/** Over the bound, by one operator or two; then perhaps to fewer again, and to more. */
function widening(dice: Dice, { ids }: ScaleSetting): number[] {
  const grown = GROWN_FROM + ids;
  const first = dice.chance(0.35) ? [grown, grown] : [grown];
  if (dice.chance(0.6)) return first;
  const shrunk = GROWN_FROM + dice.below(ids);
  return dice.chance(0.3) ? [...first, shrunk] : [...first, shrunk, shrunk + 1 + dice.below(ids)];
}

/** A few sizes, each other than the one before it. */
function upAndDown(dice: Dice, { ids }: ScaleSetting): number[] {
  const sizes: number[] = [];
  let present = ids;
  for (let left = 1 + dice.below(5); left > 0; left -= 1) {
    const down = present > 1 && dice.chance(present > ids ? 0.8 : 0.5);
    present = down ? 1 + dice.below(present - 1) : present + 1 + dice.below(ids);
    sizes.push(present);
  }
  return sizes;
}
