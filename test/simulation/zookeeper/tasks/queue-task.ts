import { type Queue, queue } from '../../../../src/zookeeper/recipes/queue/queue.js';
import type { TakenItem } from '../../../../src/zookeeper/recipes/queue/taken-item.js';
import { RecipeError } from '../../../../src/zookeeper/recipes/recipe.js';
import { bounded } from '../checks/bounded.js';
import type { Run } from '../machine-host.js';
import type { RecipeWorld } from '../world.js';
import { isExpected } from './expected.js';
import type { Scenario } from './scenario.js';

const PATH = '/queue';
const LOCKS = '/queue-locks';
/** The limit of a put that says nothing else, in milliseconds. */
const CALL_MS = 5_000;
const MOST = 80;

interface Item {
  /** True once its put has been answered. */
  certain: boolean;
  taken: number;
  acknowledged: boolean;
}

/**
 * Tasks that put items into a queue and take them out: each at most once, or with a lock path at least once.
 */
export class QueueScenario implements Scenario {
  readonly containers = [];
  readonly #items: Item[] = [];
  readonly #turns = new Map<number, number>();
  /** Takes that ended without a word, and may have removed an item. */
  #unheard = 0;
  /** Takes under way. */
  #underWay = 0;

  constructor(
    private readonly world: RecipeWorld,
    private readonly hasLocks: boolean,
  ) {}

  async live(run: Run): Promise<void> {
    const { world } = this;
    const { zookeeper, process, dice } = run;
    const options = { clock: process.clock, random: dice.fork(1) };
    const plain = { ...options, format: dice.fork(2, 0).chance(1) ? 'distributed' : 'simple' } as const;
    const one: Queue<Buffer | TakenItem> = this.hasLocks
      ? queue(zookeeper, PATH, { ...plain, lockPath: LOCKS })
      : queue(zookeeper, PATH, plain);
    while (zookeeper.state.status !== 'closed' && !world.stopping) {
      await process.clock.sleep(dice.between(0, world.conditions.grantedMs / 4));
      if (dice.chance(0.5)) await this.#put(run, one);
      else await this.#take(run, one);
    }
  }

  async #put(run: Run, one: Queue<Buffer | TakenItem>): Promise<void> {
    const { world } = this;
    if (this.#items.length >= MOST) return;
    const number = this.#items.length;
    const item: Item = { certain: false, taken: 0, acknowledged: false };
    this.#items.push(item);
    try {
      await bounded(world, run, 'put', CALL_MS, one.put(String(number)));
      if (world.recording) world.note(run.name, `has put ${number}`);
      item.certain = true;
    } catch (error) {
      this.#judge(run, `put ${number}`, error);
    }
  }

  async #take(run: Run, one: Queue<Buffer | TakenItem>): Promise<void> {
    const { world } = this;
    // No task waits to the end for items that do not come.
    const limitMs = run.dice.magnitude(20, world.quiet ? 500 : 2 * world.conditions.grantedMs);
    let taken: Buffer | TakenItem;
    this.#underWay += 1;
    try {
      // A removal under way is waited for, again after a pause.
      const moreMs = this.hasLocks ? 0 : CALL_MS;
      taken = await bounded(world, run, 'take', limitMs, one.take({ timeoutMs: limitMs }), moreMs);
      this.#underWay -= 1;
    } catch (error) {
      this.#underWay -= 1;
      this.#unheard += 1;
      if (world.quiet) this.#turns.set(run.host, world.scheduler.now);
      this.#judge(run, 'take', error);
      return;
    }
    const number = Number(Buffer.isBuffer(taken) ? taken : taken.data);
    if (world.recording) world.note(run.name, `takes ${number}`);
    world.counts.tenures += 1;
    this.#turns.set(run.host, world.scheduler.now);
    const item = this.#items[number];
    if (item === undefined) return world.fail('queue', `${run.name} takes ${number}, which no task has put`);
    item.taken += 1;
    if (item.taken > 1 && !this.hasLocks) world.fail('queue', `item ${number} is taken twice`);
    if (item.acknowledged) world.fail('queue', `item ${number} is taken after it was acknowledged`);
    if (!Buffer.isBuffer(taken)) await this.#use(run, taken, number, item);
  }

  async #use(run: Run, taken: TakenItem, number: number, item: Item): Promise<void> {
    const { world } = this;
    await run.process.clock.sleep(run.dice.between(0, world.conditions.grantedMs / 4));
    const back = !world.quiet && run.dice.chance(0.3);
    try {
      await bounded(world, run, back ? 'requeue' : 'ack', CALL_MS, back ? taken.requeue() : taken.ack());
      if (world.recording) world.note(run.name, `${back ? 'puts back' : 'has acknowledged'} ${number}`);
      if (!back) item.acknowledged = true;
    } catch (error) {
      this.#judge(run, 'ack', error);
      await taken[Symbol.asyncDispose]();
    }
  }

  #judge(run: Run, what: string, error: unknown): void {
    const { world } = this;
    if (world.recording) world.note(run.name, `${what} fails: ${String(error)}`);
    const isKnown =
      error instanceof RecipeError &&
      (error.fault === 'outcome-unknown' || (what === 'ack' && error.fault === 'not-held'));
    if (!isKnown && !isExpected(error)) world.fail('errors', `${run.name}: ${what} fails: ${String(error)}`);
  }

  waiting(runs: readonly Run[]): string | undefined {
    const late = runs.find(({ host }) => (this.#turns.get(host) ?? 0) < this.world.conditions.quietAt);
    return late && `${late.name} could take nothing since the faults have ended`;
  }

  atEnd(): void {
    const { world } = this;
    const { tree } = world.ensemble.leader;
    const left = (tree.children(PATH) ?? []).map(
      (name) => tree.data(`${PATH}/${name}`)?.toString('latin1') ?? '',
    );
    const stands = (number: number) =>
      left.some((data) => new RegExp(`[^0-9]${number}[^0-9]`).test(`\0${data}\0`));
    const gone = this.#items.flatMap(({ certain, taken }, number) =>
      certain && taken === 0 && !stands(number) ? number : [],
    );
    const mayBeLost = this.hasLocks ? 0 : this.#unheard + this.#underWay;
    if (gone.length > mayBeLost) world.fail('queue', `items ${gone.join(', ')} are lost`);
    const again = this.#items.findIndex(({ acknowledged }, number) => acknowledged && stands(number));
    if (again !== -1) world.fail('queue', `item ${again} stands although it was acknowledged`);
    const lock = tree.children(LOCKS)?.[0];
    if (lock !== undefined) world.fail('orphan', `${LOCKS}/${lock} stands although its task has given it up`);
  }
}
