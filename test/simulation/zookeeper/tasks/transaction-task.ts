import { RecipeError } from '../../../../src/zookeeper/recipes/recipe.js';
import {
  type Transaction,
  type TransactionOutcome,
  transaction,
} from '../../../../src/zookeeper/recipes/transaction.js';
import { bounded } from '../checks/bounded.js';
import type { Run } from '../machine-host.js';
import type { RecipeWorld } from '../world.js';
import { GIVEN_UP, isExpected } from './expected.js';
import type { Scenario } from './scenario.js';

/** How many transactions follow each other. */
const ROUNDS = 12;
/**
 * How much longer than its time-out a call may take, in milliseconds: the servers' answer, and for a site to
 * acknowledge.
 */
const ANSWER_MS = 10_000;

const VOTE = /^\/transactions\/(\d+)\/vote-site-(\d+)$/;

/** Tasks that commit or abort together, each of them coordinating in turn. */
export class TransactionScenario implements Scenario {
  readonly containers = [];
  readonly #sites: readonly string[];
  /** What each task has still to do first: tasks do one after the other. */
  readonly #next: number[];
  readonly #outcomes = new Map<number, TransactionOutcome>();
  /** The votes that stand, as they were made. */
  readonly #votes = new Map<string, string>();
  readonly #turns = new Map<number, number>();

  constructor(private readonly world: RecipeWorld) {
    const { machines } = world.conditions;
    this.#sites = machines.map((_, index) => `site-${index}`);
    this.#next = machines.map(() => 0);
    world.onDecided.push(({ changes }) => {
      for (const change of changes) {
        const [, round, site] = VOTE.exec(change.path) ?? [];
        if (change.type === 'create' && round !== undefined)
          this.#votes.set(`${round} ${site}`, change.data.toString('utf8'));
      }
    });
  }

  async live(run: Run): Promise<void> {
    const { world } = this;
    const { zookeeper, process, dice, host } = run;
    const stop = new AbortController();
    world.onStop.push(() => world.scheduler.at(world.scheduler.now, process, () => stop.abort(GIVEN_UP)));
    while (zookeeper.state.status !== 'closed' && !world.stopping) {
      const round = this.#next[host] as number;
      if (round >= ROUNDS) return;
      const one = transaction(zookeeper, `/transactions/${round}`, {
        clock: process.clock,
        random: dice.fork(1, round),
      });
      const coordinates = round % this.#sites.length === host;
      const both = [
        this.#join(run, one, round, stop.signal),
        ...(coordinates ? [this.#coordinate(run, one, round, stop.signal)] : []),
      ];
      const outcomes = await Promise.all(both);
      if (outcomes.every((outcome) => outcome !== undefined)) {
        this.#next[host] = round + 1;
        world.counts.tenures += 1;
        this.#turns.set(host, world.scheduler.now);
      }
      await process.clock.sleep(dice.between(0, world.conditions.grantedMs / 4));
    }
  }

  /** Again and again: the sites wait for it. */
  async #coordinate(
    run: Run,
    one: Transaction,
    round: number,
    signal: AbortSignal,
  ): Promise<TransactionOutcome | undefined> {
    const { world } = this;
    while (run.zookeeper.state.status !== 'closed' && !world.stopping) {
      const timeoutMs = run.dice.magnitude(200, 6_000);
      if (world.recording) world.note(run.name, `coordinates ${round}`);
      const call = one.coordinate({ sites: this.#sites, data: String(round), timeoutMs, signal });
      const outcome = await this.#outcome(
        run,
        'coordinate',
        round,
        bounded(world, run, 'coordinate', timeoutMs + ANSWER_MS, call, ANSWER_MS),
      );
      if (outcome !== undefined) return outcome;
      await run.process.clock.sleep(run.dice.between(0, 300));
    }
    return undefined;
  }

  async #join(
    run: Run,
    one: Transaction,
    round: number,
    signal: AbortSignal,
  ): Promise<TransactionOutcome | undefined> {
    const { dice, process } = run;
    const timeoutMs = dice.chance(0.5) ? undefined : dice.magnitude(200, 6_000);
    const vote = async () => {
      await process.clock.sleep(dice.between(0, 200));
      return dice.chance(0.2) ? ('abort' as const) : ('commit' as const);
    };
    const call = one.join({ site: `site-${run.host}`, timeoutMs, signal }, vote);
    return this.#outcome(
      run,
      'join',
      round,
      bounded(this.world, run, 'join', timeoutMs && timeoutMs + ANSWER_MS, call, ANSWER_MS),
    );
  }

  async #outcome(
    run: Run,
    what: string,
    round: number,
    call: Promise<TransactionOutcome>,
  ): Promise<TransactionOutcome | undefined> {
    const { world } = this;
    try {
      const outcome = await call;
      if (world.recording) world.note(run.name, `${what} ${round}: ${outcome}`);
      const known = this.#outcomes.get(round) ?? outcome;
      this.#outcomes.set(round, outcome);
      if (known !== outcome)
        world.fail(
          'transaction',
          `${run.name} learns ${outcome} of transaction ${round}, where others have learned ${known}`,
        );
      const against = this.#sites.findIndex((_, site) => this.#votes.get(`${round} ${site}`) !== 'commit');
      if (outcome === 'commit' && against !== -1)
        world.fail(
          'transaction',
          `transaction ${round} commits, and site ${against} has voted ${this.#votes.get(`${round} ${against}`)}`,
        );
      return outcome;
    } catch (error) {
      if (world.recording) world.note(run.name, `${what} ${round} fails: ${String(error)}`);
      const isUnknown = error instanceof RecipeError && error.fault === 'outcome-unknown';
      if (!isUnknown && !isExpected(error))
        world.fail('errors', `${run.name}: ${what} fails: ${String(error)}`);
      return undefined;
    }
  }

  waiting(runs: readonly Run[]): string | undefined {
    // Where one task is left out, its turn to coordinate never comes.
    if (runs.length < this.#sites.length) return undefined;
    const { quietAt } = this.world.conditions;
    const late = runs.find(
      ({ host }) => (this.#turns.get(host) ?? 0) < quietAt && (this.#next[host] as number) < ROUNDS,
    );
    return late && `${late.name} has learned of no outcome since the faults have ended`;
  }

  atEnd(): void {
    // What was decided is checked when it is learned.
  }
}
