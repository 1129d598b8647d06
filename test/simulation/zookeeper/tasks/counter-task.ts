import { counter } from '../../../../src/zookeeper/recipes/counter.js';
import { RecipeError } from '../../../../src/zookeeper/recipes/recipe.js';
import { bounded } from '../checks/bounded.js';
import type { Run } from '../machine-host.js';
import type { RecipeWorld } from '../world.js';
import { isExpected } from './expected.js';
import type { Scenario } from './scenario.js';

const PATH = '/counter';
/** How many additions there are room for: each has a bit of its own. */
const MOST = 60;
/** The limit of a call that says nothing else, in milliseconds. */
const CALL_MS = 5_000;

/**
 * Tasks that add to one counter, each time another power of two: its value shows which additions were carried
 * out, and whether one was twice.
 */
export class CounterScenario implements Scenario {
  readonly containers = [];
  #added = 0;
  /** The bits that are set for certain, and the bits that may be. */
  #certain = 0n;
  #possible = 0n;
  readonly #turns = new Map<number, number>();

  constructor(private readonly world: RecipeWorld) {}

  async live(run: Run): Promise<void> {
    const { world } = this;
    const { zookeeper, process, dice } = run;
    const one = counter(zookeeper, PATH, { clock: process.clock, random: dice.fork(1) });
    while (zookeeper.state.status !== 'closed' && !world.stopping) {
      await process.clock.sleep(dice.between(0, world.conditions.grantedMs / 2));
      // Some are left for the quiet part.
      if (this.#added < (world.quiet ? MOST : MOST - 2 * world.conditions.machines.length))
        await this.#add(run, one);
    }
  }

  async #add(run: Run, one: ReturnType<typeof counter>): Promise<void> {
    const { world } = this;
    const bit = 1n << BigInt(this.#added);
    this.#added += 1;
    this.#possible |= bit;
    const timeoutMs = run.dice.chance(0.5) ? undefined : run.dice.magnitude(50, CALL_MS);
    try {
      const value = await bounded(world, run, 'add', timeoutMs ?? CALL_MS, one.add(bit, { timeoutMs }));
      if (world.recording) world.note(run.name, `has added ${bit}: ${value}`);
      if ((value & bit) === 0n) world.fail('counter', `${run.name} added ${bit}, and got ${value}`);
      this.#certain |= bit;
      world.counts.tenures += 1;
      this.#turns.set(run.host, world.scheduler.now);
    } catch (error) {
      if (world.recording)
        world.note(run.name, `does not know whether it has added ${bit}: ${String(error)}`);
      const isUnknown = error instanceof RecipeError && error.fault === 'outcome-unknown';
      if (!isUnknown && !isExpected(error)) world.fail('errors', `${run.name}: add fails: ${String(error)}`);
    }
  }

  waiting(runs: readonly Run[]): string | undefined {
    const late = runs.find(({ host }) => (this.#turns.get(host) ?? 0) < this.world.conditions.quietAt);
    return this.#added < MOST && late ? `${late.name} could not add since the faults have ended` : undefined;
  }

  atEnd(): void {
    const { world } = this;
    const data = world.ensemble.leader.tree.data(PATH);
    const value = data?.length ? data.readBigInt64BE() : 0n;
    const twice = value & ~this.#possible;
    if ((value & this.#certain) !== this.#certain || twice !== 0n)
      world.fail(
        'counter',
        `the value is ${value.toString(2)}, where ${this.#certain.toString(2)} was added for certain`,
      );
  }
}
