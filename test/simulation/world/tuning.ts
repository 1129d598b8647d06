import { tuneCluster } from '../../../src/core/lease/operate/tune.js';
import { StoreSession } from '../../../src/core/lease/session/store-session.js';
import { StoreError } from '../../../src/core/store/lease-store.js';
import { EPOCH_MS, type PlannedFault } from './conditions.js';
import { Machine } from './machine.js';
import { SimulatedProcess } from './simulated-process.js';
import { SimulatedStore } from './simulated-store.js';
import type { WantedTimes } from './tune-plan.js';
import type { World } from './world.js';

/** The most calls of an operator: then the times stay as they are. */
const MOST_CALLS = 4;

/** An operator's `nodelease tune`, from a machine of its own; called again where it fails or is killed. */
export class Tuning {
  #calls = 0;
  readonly #machine: Machine;

  constructor(
    private readonly world: World,
    private readonly fault: PlannedFault,
    private readonly times: WantedTimes,
  ) {
    const { chance } = fault;
    this.#machine = new Machine(EPOCH_MS + (chance - 0.5) * 1e8, 0, chance * 1e8, 0);
  }

  call(): void {
    const { world, fault, times } = this;
    const { scheduler, invariants } = world;
    this.#calls += 1;
    const name = `tuner ${fault.target}.${this.#calls}`;
    const process = new SimulatedProcess(scheduler, this.#machine, () => 0);
    const dice = world.dice.fork(13, fault.target, this.#calls);
    const store = new SimulatedStore({ world, process, dice: dice.fork(1), name, cutOff: () => false });
    scheduler.at(scheduler.now, process, async () => {
      const session = new StoreSession(world.opened(store, process), process.clock, 4_000);
      let isDone = false;
      try {
        const { clock } = process;
        const outcome = await tuneCluster({ ...times, session, clock, random: dice.fork(2) });
        if (world.recording) world.note(name, `tune ${JSON.stringify(times)}: ${JSON.stringify(outcome)}`);
        invariants.times.onOutcome(name, times, outcome);
        isDone = true;
      } catch (error) {
        if (world.recording) world.note(name, `fails: ${String(error)}`);
        if (!(error instanceof StoreError)) invariants.onUnexpected(name, error);
      }
      this.#end(process, isDone ? undefined : dice.between(20, 1_000));
    });
    if (!dice.chance(0.4)) return;
    scheduler.at(scheduler.now + dice.magnitude(5, fault.lastsMs), undefined, () => {
      if (!process.alive || world.quiet || !world.happens('tune', `${name} is killed`)) return;
      this.#end(process, dice.chance(0.3) ? undefined : dice.between(20, 5_000));
    });
  }

  #end(process: SimulatedProcess, againMs: number | undefined): void {
    process.kill();
    const { scheduler, conditions } = this.world;
    if (againMs === undefined || this.#calls === MOST_CALLS) return;
    const at = scheduler.now + againMs;
    if (at < conditions.quietAt) scheduler.at(at, undefined, () => this.call());
  }
}
