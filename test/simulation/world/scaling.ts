import { StoreUnusableError } from '../../../src/core/base/errors.js';
import { scaleCluster } from '../../../src/core/lease/operate/scale.js';
import { StoreSession } from '../../../src/core/lease/session/store-session.js';
import { StoreError } from '../../../src/core/store/lease-store.js';
import { EPOCH_MS, type PlannedFault } from './conditions.js';
import { Machine } from './machine.js';
import { SimulatedProcess } from './simulated-process.js';
import { SimulatedStore } from './simulated-store.js';
import type { World } from './world.js';

/** The most calls of an operator that are killed: then it is left alone. */
const MOST_KILLED = 3;

/**
 * An operator's `nodelease scale N`, from a machine of its own with a clock of its own: called again until it
 * has done what it is for.
 */
export class Scaling {
  #calls = 0;
  readonly #machine: Machine;
  readonly #size: number;
  /** How long it leaves holders their ids, in milliseconds. */
  readonly #patienceMs: number;

  constructor(
    private readonly world: World,
    private readonly fault: PlannedFault,
  ) {
    const { chance, target, size = 0 } = fault;
    this.#machine = new Machine(EPOCH_MS + (chance - 0.5) * 1e8, 0, chance * 1e8, 0);
    this.#size = size;
    const dice = world.dice.fork(6, target);
    this.#patienceMs = dice.pick([0, dice.magnitude(50, 3_000), dice.magnitude(500, 30_000)]);
    world.invariants.scales.onWanted(target, size);
  }

  /** Calls it, and again where the call fails or is killed. */
  call(): void {
    const { world, fault } = this;
    const { scheduler, conditions, invariants } = world;
    this.#calls += 1;
    const number = this.#calls;
    const name = `operator ${fault.target}.${number}`;
    const process = new SimulatedProcess(scheduler, this.#machine, () => 0);
    const dice = world.dice.fork(6, fault.target, number);
    const store = new SimulatedStore({ world, process, dice: dice.fork(1), name, cutOff: () => false });
    // No command waits longer than the faults last.
    const drainTimeoutMs = Math.min(this.#patienceMs, Math.max(0, conditions.quietAt - scheduler.now));
    invariants.scales.onCall(process, { forcesAt: scheduler.now + drainTimeoutMs });
    scheduler.at(scheduler.now, process, async () => {
      const session = new StoreSession(world.opened(store, process), process.clock, 4_000);
      const options = {
        session,
        clock: process.clock,
        random: dice.fork(2),
        size: this.#size,
        waitTimeoutMs: 20_000,
        drainTimeoutMs,
      };
      let settled = false;
      try {
        const outcome = await scaleCluster(options);
        if (world.recording) world.note(name, `scale to ${this.#size}: ${JSON.stringify(outcome)}`);
        invariants.scales.onOutcome(name, outcome);
        settled =
          outcome.kind === 'scaled' ||
          outcome.kind === 'superseded' ||
          (outcome.kind === 'no-cluster' && world.quiet);
        if (settled) invariants.scales.onSettled(fault.target, outcome.kind === 'scaled');
      } catch (error) {
        if (world.recording) world.note(name, `fails: ${String(error)}`);
        if (!isExpected(error)) invariants.onUnexpected(name, error);
      }
      this.#end(process, settled ? undefined : dice.between(20, 1_000));
    });
    if (number > MOST_KILLED || !dice.chance(0.5)) return;
    scheduler.at(scheduler.now + dice.magnitude(5, fault.lastsMs), undefined, () => {
      if (!process.alive || world.quiet || !world.happens('scale', `${name} is killed`)) return;
      const forGood = dice.chance(0.15);
      if (forGood) invariants.scales.onSettled(fault.target, false);
      // Soon, or when somebody has looked again; in any case before the faults are over.
      const againMs = dice.pick([dice.between(20, 1_000), dice.between(20, 10_000)]);
      this.#end(
        process,
        forGood ? undefined : Math.min(againMs, Math.max(20, conditions.quietAt - scheduler.now)),
      );
    });
  }

  #end(process: SimulatedProcess, againMs: number | undefined): void {
    process.kill();
    const { scheduler } = this.world;
    if (againMs !== undefined) scheduler.at(scheduler.now + againMs, undefined, () => this.call());
  }
}

/** Whether a call may fail like this: the store was away for too long, or refused. */
function isExpected(error: unknown): boolean {
  return error instanceof StoreError || error instanceof StoreUnusableError;
}
