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

/** The map of shards is lost or overwritten, once in a fourth of the worlds, and repaired. */
export function planMapDamage(world: World): void {
  const { scheduler, conditions, bucket } = world;
  const dice = world.dice.fork(10);
  if (!dice.chance(0.25)) return;
  const at = dice.between(0, conditions.quietAt);
  const isOverwritten = dice.chance(0.3);
  const repairs = drawRepairs(at, dice);
  scheduler.at(at, undefined, () => {
    // What no task has made yet is not lost.
    if (
      bucket.read(SHARDS_KEY) === undefined ||
      bucket.read('cluster.json')?.body.includes('"created":true') !== true
    )
      return;
    if (!world.happens(MAP_DAMAGED, `the map of shards is ${isOverwritten ? 'overwritten' : 'deleted'}`))
      return;
    world.invariants.shards.recorder?.onLost();
    bucket.remove(SHARDS_KEY);
    if (isOverwritten) world.atStore(0, at, () => bucket.create(SHARDS_KEY, 'no map', {}));
    planRepairs(world, repairs, dice);
  });
}

/** An operator who repairs the map. Milliseconds, true time. */
interface PlannedRepair {
  readonly number: number;
  readonly at: number;
  /** Until it is killed; undefined where it is not. */
  readonly livesMs: number | undefined;
}

/** One or two operators, some of whom get in each other's way. */
export function drawRepairs(damagedAt: number, dice: Dice): readonly PlannedRepair[] {
  return Array.from({ length: 1 + dice.below(2) }, (_, number) => ({
    number,
    at: damagedAt + dice.magnitude(100, 30_000),
    livesMs: dice.chance(0.4) ? dice.magnitude(20, 20_000) : undefined,
  }));
}

export function planRepairs(world: World, repairs: readonly PlannedRepair[], dice: Dice): void {
  const { scheduler, conditions } = world;
  for (const { at, livesMs, number } of repairs) {
    if (at >= conditions.quietAt) continue;
    const process = new SimulatedProcess(scheduler, new Machine(EPOCH_MS, 0, 0, 0), () => 0);
    scheduler.at(at, process, () => void repair(world, process, dice.fork(number)));
    if (livesMs !== undefined) scheduler.at(at + livesMs, undefined, () => !world.quiet && process.kill());
  }
}

/**
 * Once the faults are over, an operator repairs what is damaged; and again at the end, since a store may have
 * gone back to before there were shards, and a task that takes part finds that their map is lost.
 */
export function planLastRepairs(world: World, endAt: number): void {
  const { scheduler, conditions, invariants } = world;
  const dice = world.dice.fork(10);
  const process = new SimulatedProcess(scheduler, new Machine(EPOCH_MS, 0, 0, 0), () => 0);
  scheduler.at(conditions.quietAt, process, async () => {
    for (const at of [conditions.quietAt, endAt]) {
      await process.clock.sleep(at - scheduler.now);
      for (let call = 0; invariants.shards.wasDamaged && call < MOST_REPAIRS; call += 1)
        if (await repair(world, process, dice.fork((at === endAt ? 200 : 100) + call))) break;
    }
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
