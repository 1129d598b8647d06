import { withTimeout } from '../base/abort.js';
import type { Clock } from '../clock.js';
import { notify } from '../zookeeper/listeners.js';
import type { ReconcileState } from './reconcile-loop.js';

/** Something that is kept right in ZooKeeper. */
export interface KeptRight {
  readonly state: ReconcileState;
  onState(listener: (state: ReconcileState) => void): () => void;
}

/** Several things that are kept right in ZooKeeper, as one: `synced` when all of them are, `closed` when one of them is. */
export class JointState implements KeptRight {
  constructor(private readonly parts: readonly KeptRight[]) {}

  get state(): ReconcileState {
    const states = this.parts.map(({ state }) => state);
    const is = (status: ReconcileState['status']) => states.find((state) => state.status === status);
    return is('closed') ?? is('degraded') ?? { status: 'synced' };
  }

  /** Calls `listener` after every change of a part, with the state of the whole, until the returned function is called. Listeners must not throw. */
  onState(listener: (state: ReconcileState) => void): () => void {
    const forget = this.parts.map((part) => part.onState(() => listener(this.state)));
    return () => {
      for (const each of forget) each();
    };
  }

  /**
   * Resolves to the first state that is not `degraded`, or to the present one after that time.
   *
   * @throws `signal.reason` as soon as `signal` aborts
   */
  async settled(clock: Clock, timeoutMs: number, signal?: AbortSignal): Promise<ReconcileState> {
    let forget = () => {};
    const reached = new Promise<ReconcileState>((resolve) => {
      const look = (state: ReconcileState) => {
        if (state.status !== 'degraded') resolve(state);
      };
      forget = this.onState(look);
      look(this.state);
    });
    try {
      return (await withTimeout(clock, timeoutMs, reached, signal)) ?? this.state;
    } finally {
      forget();
    }
  }
}

/** A trouble that does not go by itself, as a part of a {@link JointState}: there until whoever told it tells that it is over. */
export class StandingTrouble implements KeptRight {
  #state: ReconcileState = { status: 'synced' };
  readonly #listeners = new Set<(state: ReconcileState) => void>();

  /** @param say told the problem, empty for none: once at the beginning, and then with every change */
  constructor(private readonly say: (problem: string) => void) {
    say('');
  }

  get state(): ReconcileState {
    return this.#state;
  }

  onState(listener: (state: ReconcileState) => void): () => void {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  }

  /** @param problem empty for none */
  tell(problem: string): void {
    if (problem === (this.#state.status === 'degraded' ? this.#state.problem : '')) return;
    this.#state = problem === '' ? { status: 'synced' } : { status: 'degraded', problem };
    for (const listener of [...this.#listeners]) notify(listener, this.#state);
    this.say(problem);
  }
}

/** Troubles of several parts, told as those of one: the end of them only when none is left. */
export class JointTroubles<Part extends string> {
  /** The problem of each part, empty for none; undefined while nothing was told of it. */
  readonly #problems: Map<Part, string | undefined>;
  #said: string | undefined;

  /** @param say told the problem, empty when there is none any more; not the same one twice */
  constructor(
    parts: readonly Part[],
    private readonly say: (problem: string) => void,
  ) {
    this.#problems = new Map(parts.map((part) => [part, undefined]));
  }

  /** @param problem empty for none */
  tell(part: Part, problem: string): void {
    this.#problems.set(part, problem);
    const problems = [...this.#problems.values()];
    const all = problems.find((each) => each !== undefined && each !== '') ?? (problems.includes(undefined) ? undefined : '');
    if (all === undefined || all === this.#said) return;
    this.#said = all;
    this.say(all);
  }
}
