import { StoreUnusableError } from '../../../src/core/base/errors.js';
import { StoreSession } from '../../../src/core/lease/session/store-session.js';
import { StoreError } from '../../../src/core/store/lease-store.js';
import { repairShards } from '../../../src/node/shards/repair-shards.js';
import { SHARDS_KEY } from '../../../src/node/shards/shard-map.js';
import { EPOCH_MS, MAP_DAMAGED } from './conditions.js';
import type { Dice } from './dice.js';
import { Machine } from './machine.js';
import { SimulatedProcess } from './simulated-process.js';
import { SimulatedStore } from './simulated-store.js';
import type { World } from './world.js';

/** How often an operator repairs the map in the quiet before that is no longer for this world. */
const MOST_REPAIRS = 5;

/**
 * The map of shards is lost or overwritten, once in a fourth of the worlds. Operators repair it, from then on
 * and once the faults are over; some are killed at it, some get in each other's way.
 */
export function planMapDamage(world: World): void {
  const { scheduler, conditions, bucket } = world;
  const dice = world.dice.fork(10);
  if (!dice.chance(0.25)) return;
  const at = dice.between(0, conditions.quietAt);
  const isOverwritten = dice.chance(0.3);
  const repairs = Array.from({ length: 1 + dice.below(2) }, (_, number) => ({
    number,
    at: at + dice.magnitude(100, 30_000),
    livesMs: dice.chance(0.4) ? dice.magnitude(20, 20_000) : undefined,
  }));
  scheduler.at(at, undefined, () => {
    // What no task has made yet is not lost.
    if (
      bucket.read(SHARDS_KEY) === undefined ||
      bucket.read('cluster.json')?.body.includes('"created":true') !== true
    )
      return;
    if (!world.happens(MAP_DAMAGED, `the map of shards is ${isOverwritten ? 'overwritten' : 'deleted'}`))
      return;
    bucket.remove(SHARDS_KEY);
    if (isOverwritten) world.atStore(0, at, () => bucket.create(SHARDS_KEY, 'no map', {}));
    for (const planned of repairs) {
      if (planned.at < conditions.quietAt) {
        const process = new SimulatedProcess(scheduler, new Machine(EPOCH_MS, 0, 0, 0), () => 0);
        scheduler.at(planned.at, process, () => void repair(world, process, dice.fork(planned.number)));
        if (planned.livesMs !== undefined)
          scheduler.at(planned.at + planned.livesMs, undefined, () => !world.quiet && process.kill());
      }
    }
    const last = new SimulatedProcess(scheduler, new Machine(EPOCH_MS, 0, 0, 0), () => 0);
    scheduler.at(conditions.quietAt, last, async () => {
      for (let call = 0; call < MOST_REPAIRS; call += 1)
        if (await repair(world, last, dice.fork(100 + call))) return;
    });
  });
}

/** `nodelease init --repair`; whether it says that the map is sound now. */
async function repair(world: World, process: SimulatedProcess, dice: Dice): Promise<boolean> {
  const name = 'operator';
  const store = new SimulatedStore({ world, process, dice: dice.fork(1), name, cutOff: () => false });
  const session = new StoreSession(world.opened(store, process), process.clock, 4_000);
  try {
    const done = await repairShards({ session, clock: process.clock, random: dice.fork(2) });
    if (world.recording) world.note(name, `repairs the map of shards: ${JSON.stringify(done)}`);
    return true;
  } catch (error) {
    if (world.recording) world.note(name, `fails to repair the map of shards: ${String(error)}`);
    if (!(error instanceof StoreError || error instanceof StoreUnusableError))
      world.invariants.onUnexpected(name, error);
    return false;
  }
}
