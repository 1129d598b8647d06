import { EPOCH_MS } from '../world/conditions.js';
import { Dice } from '../world/dice.js';
import { Scheduler } from '../world/scheduler.js';
import type { RecipeConditions, RecipeFault } from './conditions.js';
import { Ensemble } from './ensemble/ensemble.js';
import type { Transaction } from './ensemble/leader.js';
import { operationsOf, type Request } from './ensemble/protocol.js';

/** What has to hold in the simulation of the recipes. */
export type RecipeInvariant =
  /** No two tasks believe at once that they hold what one of them may hold, or more than so many. */
  | 'exclusion'
  /** Tokens of successive holders increase. */
  | 'token'
  /** Belief, and the handle's signal, end before the servers can have ended the session. */
  | 'deadline'
  /** No znode stays of a task that has given up or released, while its session lives. */
  | 'orphan'
  /** A waiting contender has one watch, on its predecessor. */
  | 'watches'
  /** guard() writes nothing after the lock is gone. */
  | 'guard'
  /** A call settles by its deadline. */
  | 'hang'
  /** A call fails in no undocumented way. */
  | 'errors'
  /** With the faults ended, every waiting task gets its turn. */
  | 'liveness'
  /** No task passes a barrier before all are there. */
  | 'barrier'
  /** A counter's value is the sum of what was added. */
  | 'counter'
  /** No item is taken twice, lost or made up. */
  | 'queue'
  /** All sites of a transaction reach the same outcome. */
  | 'transaction'
  /** Shared data is what was written last; chains and lists have no gaps; all replicas become equal. */
  | 'shared-data';

export interface RecipeViolation {
  readonly invariant: RecipeInvariant;
  /** True time in milliseconds. */
  readonly at: number;
  readonly text: string;
}

/** What one run of a seed counted. */
export interface RecipeCounts {
  tenures: number;
  /** Sessions that the servers ended. */
  takeOvers: number;
  requests: number;
  ids: number;
  readonly faults: Map<RecipeFault, number>;
}

export interface RecipeWorldOptions {
  /** The names of the faults that may happen; all of them when undefined. */
  readonly allowed?: ReadonlySet<string> | undefined;
  readonly recording?: boolean;
}

/** One seed's world: true time, the servers, and what has happened so far. */
export class RecipeWorld {
  readonly scheduler = new Scheduler();
  readonly dice: Dice;
  readonly ensemble: Ensemble;
  readonly counts: RecipeCounts = { tenures: 0, takeOvers: 0, requests: 0, ids: 0, faults: new Map() };
  readonly history: string[] = [];
  /** The names of everything that happened and could have been left out. */
  readonly happened: string[] = [];
  violation: RecipeViolation | undefined;
  /** True once the tasks are to end. */
  stopping = false;
  ended = false;
  /** Called when the tasks are to end. */
  readonly onStop: (() => void)[] = [];
  /** Called when the leader ends a session, before that is decided. */
  readonly onExpired: ((sessionId: string) => void)[] = [];
  /** Called when the leader has decided a transaction. */
  readonly onDecided: ((transaction: Transaction) => void)[] = [];
  /** Called when a session leaves a watch at a server. */
  readonly onWatch: Ensemble['onWatch'][] = [];

  constructor(
    readonly conditions: RecipeConditions,
    private readonly options: RecipeWorldOptions = {},
  ) {
    this.dice = new Dice(conditions.seed).fork(72);
    const [latency, lag, commit] = [this.dice.fork(1), this.dice.fork(2), this.dice.fork(3)];
    const { peerLatencyMs, applyLagMs } = conditions;
    this.ensemble = new Ensemble({
      ...conditions,
      scheduler: this.scheduler,
      wallAt: (time) => EPOCH_MS + time,
      peerLatencyMs: () => latency.between(...peerLatencyMs),
      applyLagMs: () => lag.between(...applyLagMs),
      commitMs: () => 2 * commit.between(...peerLatencyMs),
      onExpired: (sessionId) => {
        this.counts.takeOvers += 1;
        if (this.recording) this.note('leader', `ends session ${sessionId}`);
        for (const listener of this.onExpired) listener(sessionId);
      },
      onDecided: (transaction) => {
        for (const listener of this.onDecided) listener(transaction);
      },
      onRequest: (sessionId, request) => {
        this.counts.requests += 1;
        if (this.recording) this.note(`s${sessionId.slice(-3)}`, describeRequest(request));
      },
      onWatch: (...watch) => {
        for (const listener of this.onWatch) listener(...watch);
      },
    });
    for (const kind of conditions.standing) this.counts.faults.set(kind, 1);
  }

  get recording(): boolean {
    return this.options.recording === true;
  }

  /** True in the last part of the run, in which nothing goes wrong any more. */
  get quiet(): boolean {
    return this.scheduler.now >= this.conditions.quietAt;
  }

  /** Whether a task takes part. @param name `host N takes part` */
  takesPart(name: string): boolean {
    if (this.options.allowed?.has(name) === false) return false;
    this.happened.push(name);
    return true;
  }

  /**
   * Whether a fault that was drawn is to happen.
   * @param name the same in every run of the seed in which it is drawn
   */
  happens(kind: RecipeFault, name: string): boolean {
    if (!this.takesPart(name)) return false;
    this.counts.faults.set(kind, (this.counts.faults.get(kind) ?? 0) + 1);
    if (this.recording) this.note('', name);
    return true;
  }

  /** All is over. */
  end(): void {
    this.ended = true;
  }

  /** Has all tasks give up what they wait for or hold. */
  stop(): void {
    this.stopping = true;
    for (const listener of this.onStop) listener();
  }

  fail(invariant: RecipeInvariant, text: string): void {
    this.violation ??= { invariant, at: this.scheduler.now, text };
  }

  /** One line of the history. Ask for `recording` first where the text costs anything. */
  note(who: string, what: string): void {
    this.history.push(`${(this.scheduler.now / 1_000).toFixed(3).padStart(9)} s  ${who.padEnd(10)} ${what}`);
  }
}

function describeRequest(request: Request): string {
  if ('watch' in request) return `${request.type} ${request.path}${request.watch ? ' with a watch' : ''}`;
  if (request.type === 'close') return 'ends its session';
  return operationsOf(request)
    .map((operation) => `${operation.type} ${operation.path}`)
    .join(', ');
}
