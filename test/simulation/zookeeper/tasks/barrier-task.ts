import { type Barrier, barrier } from '../../../../src/zookeeper/recipes/barrier.js';
import { bounded } from '../checks/bounded.js';
import type { Run } from '../machine-host.js';
import type { RecipeWorld } from '../world.js';
import { drawWait, isExpected } from './expected.js';
import type { Scenario } from './scenario.js';

const PATH = '/gates/night';
/** The limit of a call that says nothing else, in milliseconds. */
const CALL_MS = 5_000;

/** One task opens a gate and shuts it, over and over; the others shut it as well, and wait. */
export class BarrierScenario implements Scenario {
  readonly containers = ['/gates'];
  readonly #turns = new Map<number, number>();
  /** When the leader last removed it, and last made it. */
  #openedAt = Number.NEGATIVE_INFINITY;
  #shutAt = Number.NEGATIVE_INFINITY;

  constructor(private readonly world: RecipeWorld) {
    world.onDecided.push(({ changes }) => {
      for (const { path, type } of changes) {
        if (path !== PATH) continue;
        if (type === 'remove') this.#openedAt = world.scheduler.now;
        else this.#shutAt = world.scheduler.now;
      }
    });
  }

  get #isShut(): boolean {
    return this.world.ensemble.leader.tree.data(PATH) !== undefined;
  }

  async live(run: Run): Promise<void> {
    const { world } = this;
    const { zookeeper, process, dice } = run;
    const gate = barrier(zookeeper, PATH, { clock: process.clock, random: dice.fork(1) });
    while (zookeeper.state.status !== 'closed' && !world.stopping) {
      await process.clock.sleep(dice.between(0, world.conditions.grantedMs / 4));
      if (run.host === 0) await this.#open(run, gate);
      else await this.#pass(run, gate);
    }
  }

  async #open(run: Run, gate: Barrier): Promise<void> {
    const { world } = this;
    const begun = world.scheduler.now;
    if (!(await this.#briefly(run, 'remove', gate.remove()))) return;
    this.#hadItsTurn(run);
    if (this.#isShut && this.#shutAt < begun)
      world.fail('barrier', `${run.name} has opened the gate, which was shut all the time`);
  }

  async #pass(run: Run, gate: Barrier): Promise<void> {
    const { world } = this;
    const { dice } = run;
    const begun = world.scheduler.now;
    const hasShut = dice.chance(0.5) && (await this.#briefly(run, 'set', gate.set()));
    if (hasShut && !this.#isShut && this.#openedAt < begun)
      world.fail('barrier', `${run.name} has shut the gate, which was open all the time`);
    const { options, limitMs } = drawWait(world, run, 2 * world.conditions.grantedMs);
    const [wasShut, waitedFrom] = [this.#isShut, world.scheduler.now];
    try {
      await bounded(world, run, 'wait', limitMs, gate.wait(options));
    } catch (error) {
      this.#judge(run, 'wait', error);
      return;
    }
    this.#hadItsTurn(run);
    if (world.recording) world.note(run.name, 'has passed');
    if (wasShut && this.#shutAt < waitedFrom && this.#openedAt < waitedFrom)
      world.fail('barrier', `${run.name} has passed the gate that was shut all the time`);
  }

  /** Whether it was done. */
  async #briefly(run: Run, what: string, call: Promise<void>): Promise<boolean> {
    try {
      await bounded(this.world, run, what, CALL_MS, call);
      if (this.world.recording) this.world.note(run.name, `${what} is done`);
      return true;
    } catch (error) {
      this.#judge(run, what, error);
      return false;
    }
  }

  #hadItsTurn(run: Run): void {
    this.world.counts.tenures += 1;
    this.#turns.set(run.host, this.world.scheduler.now);
  }

  #judge(run: Run, what: string, error: unknown): void {
    if (this.world.recording) this.world.note(run.name, `${what} fails: ${String(error)}`);
    if (!isExpected(error)) this.world.fail('errors', `${run.name}: ${what} fails: ${String(error)}`);
  }

  waiting(runs: readonly Run[]): string | undefined {
    // Where the one that opens is left out, no other task does.
    if (!runs.some(({ host }) => host === 0)) return undefined;
    const late = runs.find(({ host }) => (this.#turns.get(host) ?? 0) < this.world.conditions.quietAt);
    return late && `${late.name} was not let through since the faults have ended`;
  }

  atEnd(): void {}
}
