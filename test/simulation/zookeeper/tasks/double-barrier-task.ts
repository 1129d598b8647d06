import { type DoubleBarrier, doubleBarrier } from '../../../../src/zookeeper/recipes/double-barrier.js';
import { RecipeError } from '../../../../src/zookeeper/recipes/recipe.js';
import { bounded } from '../checks/bounded.js';
import type { Run } from '../machine-host.js';
import type { RecipeWorld } from '../world.js';
import { drawWait, isExpected } from './expected.js';
import type { Scenario } from './scenario.js';

const PATH = '/barriers/one';
const READY = `${PATH}/ready`;

/** Tasks that begin together and end together, round after round. */
export class DoubleBarrierScenario implements Scenario {
  readonly containers = [PATH, '/barriers'];
  readonly #members: number;
  readonly #turns = new Map<number, number>();
  /** When `ready` was last made or set, and when as many as there are members stood there. */
  #openedAt = Number.NEGATIVE_INFINITY;
  #fullAt = Number.NEGATIVE_INFINITY;
  /** Tasks that are in, by the session that they are in with. */
  readonly #in = new Map<Run, { readonly sessionId: string; readonly openedAt: number }>();

  constructor(private readonly world: RecipeWorld) {
    this.#members = world.conditions.machines.length;
    const { scheduler, ensemble } = world;
    world.onDecided.push(({ changes }) => {
      if (!changes.some(({ path }) => path.startsWith(PATH))) return;
      const names = (ensemble.leader.tree.children(PATH) ?? []).filter((name) => name !== 'ready');
      if (names.length >= this.#members) this.#fullAt = scheduler.now;
      if (!changes.some(({ path, type }) => path === READY && type !== 'remove')) return;
      this.#openedAt = scheduler.now;
      if (names.length >= this.#members) this.#fullAt = scheduler.now;
    });
  }

  async live(run: Run): Promise<void> {
    const { world } = this;
    const { zookeeper, process, dice } = run;
    const own = doubleBarrier(zookeeper, PATH, {
      members: this.#members,
      clock: process.clock,
      random: dice.fork(1),
    });
    while (zookeeper.state.status !== 'closed' && !world.stopping) {
      if (await this.#enter(run, own)) {
        await process.clock.sleep(dice.between(0, world.conditions.grantedMs / 4));
        await this.#leave(run, own);
      }
      await process.clock.sleep(dice.between(0, world.conditions.grantedMs / 8));
    }
  }

  async #enter(run: Run, own: DoubleBarrier): Promise<boolean> {
    const { world } = this;
    const openedBefore = this.#openedAt;
    const { options, limitMs } = drawWait(world, run, 3 * world.conditions.grantedMs);
    if (world.recording)
      world.note(run.name, `enters${limitMs === undefined ? '' : ` within ${Math.round(limitMs)} ms`}`);
    try {
      await bounded(world, run, 'enter', limitMs, own.enter(options));
    } catch (error) {
      this.#judge(run, 'enter', error);
      return false;
    }
    if (world.recording) world.note(run.name, 'is in');
    world.counts.tenures += 1;
    this.#turns.set(run.host, world.scheduler.now);
    const { state } = run.zookeeper;
    this.#in.set(run, { sessionId: 'sessionId' in state ? state.sessionId : '', openedAt: this.#openedAt });
    if (this.#openedAt === openedBefore)
      world.fail('barrier', `${run.name} is in by a ready that was there before it came`);
    else if (this.#fullAt < openedBefore)
      world.fail('barrier', `${run.name} is in, and there never were ${this.#members}`);
    return true;
  }

  async #leave(run: Run, barrier: DoubleBarrier): Promise<void> {
    const { world } = this;
    const { tree } = world.ensemble.leader;
    const { options, limitMs } = drawWait(world, run, 3 * world.conditions.grantedMs);
    const own = this.#in.get(run);
    this.#in.delete(run);
    // One that comes back after it gave up leaving may be in with members of the last round.
    const others = [...this.#in].filter(([, { openedAt }]) => openedAt === own?.openedAt);
    if (world.recording) world.note(run.name, 'leaves');
    try {
      await bounded(world, run, 'leave', limitMs, barrier.leave(options));
    } catch (error) {
      this.#judge(run, 'leave', error);
      return;
    }
    if (world.recording) world.note(run.name, 'has left');
    const stands = (sessionId: string) =>
      (tree.children(PATH) ?? []).some((name) => tree.owner(`${PATH}/${name}`) === sessionId);
    const left = others.find(([other, place]) => this.#in.get(other) === place && stands(place.sessionId));
    if (left) world.fail('barrier', `${run.name} has left, while ${left[0].name} has not`);
  }

  #judge(run: Run, what: string, error: unknown): void {
    const { world } = this;
    if (world.recording) world.note(run.name, `${what} fails: ${String(error)}`);
    const isOut = what === 'leave' && error instanceof RecipeError && error.fault === 'not-held';
    if (!isOut && !isExpected(error)) world.fail('errors', `${run.name}: ${what} fails: ${String(error)}`);
  }

  waiting(runs: readonly Run[]): string | undefined {
    // Where one task is left out, there are never enough.
    if (runs.length < this.#members) return undefined;
    const late = runs.find(({ host }) => (this.#turns.get(host) ?? 0) < this.world.conditions.quietAt);
    return late && `${late.name} was in no round since the faults have ended`;
  }

  atEnd(): void {
    const { tree } = this.world.ensemble.leader;
    const left = (tree.children(PATH) ?? []).find((name) => name !== 'ready');
    if (left !== undefined)
      this.world.fail('orphan', `${PATH}/${left} stands although its task has given it up`);
  }
}
