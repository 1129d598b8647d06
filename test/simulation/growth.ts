import { scaleCluster } from '../../src/lease/scale.js';
import { StoreSession } from '../../src/lease/store-session.js';
import { EPOCH_MS, type PlannedFault } from './conditions.js';
import { Machine } from './machine.js';
import { SimulatedProcess } from './simulated-process.js';
import { SimulatedStore } from './simulated-store.js';
import type { World } from './world.js';

/** An operator's `nodelease scale N`, from a machine of its own with a clock of its own: called again until it has done what it is for. */
export class Growth {
  #done = false;
  #calls = 0;
  readonly #machine: Machine;

  constructor(
    private readonly world: World,
    private readonly size: number,
    private readonly fault: PlannedFault,
  ) {
    this.#machine = new Machine(EPOCH_MS + (fault.chance - 0.5) * 1e8, 0, fault.chance * 1e8, 0);
  }

  /** Calls it, and again where the call fails or is killed. */
  call(): void {
    const { world, fault } = this;
    const { scheduler } = world;
    this.#calls += 1;
    world.invariants.onGrowth(this.size);
    const number = this.#calls;
    const name = `operator ${fault.target}.${number}`;
    const process = new SimulatedProcess(scheduler, this.#machine, () => 0);
    const dice = world.dice.fork(6, fault.target, number);
    const store = new SimulatedStore({ world, process, dice: dice.fork(1), name, cutOff: () => false });
    const again = () => {
      process.kill();
      if (!this.#done) scheduler.at(scheduler.now + dice.between(20, 1_000), undefined, () => this.call());
    };
    scheduler.at(scheduler.now, process, async () => {
      const session = new StoreSession(store, process.clock, 4_000);
      try {
        const outcome = await scaleCluster({ session, clock: process.clock, random: dice.fork(2), size: this.size, waitTimeoutMs: 20_000 });
        if (world.recording) world.note(name, `scale: ${JSON.stringify(outcome)}`);
        this.#done = outcome.kind === 'scaled';
      } catch (error) {
        if (world.recording) world.note(name, `fails: ${String(error)}`);
      }
      again();
    });
    if (number > 3 || !dice.chance(0.4)) return;
    scheduler.at(scheduler.now + dice.magnitude(5, fault.lastsMs), undefined, () => {
      if (!process.alive || world.quiet || !world.happens('scale', `${name} is killed`)) return;
      again();
    });
  }
}
