import { CLUSTER_KEY, decodeCluster } from '../../../src/core/lease/model/cluster-config.js';
import type { StoredObject } from '../../../src/core/store/lease-store.js';
import { type Conditions, STORE_RESTORED } from './conditions.js';
import { Dice } from './dice.js';
import { drawRepairs, planRepairs } from './map-damage.js';
import type { World } from './world.js';

/** The store goes back: it is restored from a copy, or promoted from a replica. Milliseconds, true time. */
export interface Restore {
  readonly at: number;
  /** Of which time its content is from then on; perhaps one before it went back last. */
  readonly to: number;
  /** How far its clock is set at that moment. */
  readonly clockStepMs: number;
}

const HOUR_MS = 3_600_000;

/** In every fourth seed the store tells its epoch, and goes back up to three times. */
export function drawRestores({ seed, quietAt }: Conditions): readonly Restore[] {
  if (seed % 4 !== 2) return [];
  const dice = new Dice(seed).fork(11);
  const times = Array.from({ length: 1 + dice.below(3) }, () => dice.between(0, quietAt));
  return times
    .sort((a, b) => a - b)
    .map((at) => ({
      at,
      to: dice.chance(0.5) ? dice.between(0, at) : Math.max(0, at - dice.magnitude(1, 10_000)),
      clockStepMs: dice.chance(0.6) ? 0 : dice.pick([-1, 1]) * dice.magnitude(10, HOUR_MS),
    }));
}

/** The longest duration ever of a cluster; 0 where there is none. */
function longestMs(objects: readonly StoredObject[]): number {
  const cluster = objects.find(({ key }) => key === CLUSTER_KEY);
  return cluster ? decodeCluster(cluster.body).longestMs : 0;
}

/**
 * A store that had no cluster at that time does not go back: nothing in it could say that there was one. Nor one that
 * had no duration as long as now, which is not covered (docs/design/safety.md). The map of shards is damaged then, and
 * repaired.
 */
export function planRestores(world: World, ownsShards: boolean): void {
  const { scheduler } = world;
  for (const [number, restore] of world.restores.entries()) {
    const { at, to, clockStepMs } = restore;
    let copy: readonly StoredObject[] = [];
    scheduler.at(to, undefined, () => {
      copy = world.copy();
    });
    scheduler.at(at, undefined, () => {
      const name = `${number} ${STORE_RESTORED} to ${Math.round(at - to)} ms ago, its clock set by ${Math.round(clockStepMs)} ms`;
      const isCovered = longestMs(copy) > 0 && longestMs(copy) >= longestMs(world.copy());
      if (!isCovered || !world.happens(STORE_RESTORED, name)) return;
      world.restore(restore, copy);
      const dice = world.dice.fork(12, number);
      if (ownsShards) planRepairs(world, drawRepairs(at, dice), dice);
    });
  }
}
