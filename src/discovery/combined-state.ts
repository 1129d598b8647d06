import { withTimeout } from '../base/abort.js';
import type { Clock } from '../base/clock.js';
import { Listeners } from '../zookeeper/listeners.js';
import type { ReconcileState } from '../zookeeper/reconcile-loop.js';

/** Something that is kept right in ZooKeeper. */
export interface KeptRight {
  readonly state: ReconcileState;
  onState(listener: (state: ReconcileState) => void): () => void;
}

/** The state of several parts as one: `synced` when all of them are and nothing is refused, `closed` when one of them is. */
export class CombinedState implements KeptRight {
  #refusal = '';
  readonly #refusals = new Listeners<string>();

  constructor(private readonly parts: readonly KeptRight[]) {}

  get state(): ReconcileState {
    const states = this.parts.map(({ state }) => state);
    if (this.#refusal !== '') states.push({ status: 'degraded', problem: this.#refusal });
    const is = (status: ReconcileState['status']) => states.find((state) => state.status === status);
    return is('closed') ?? is('degraded') ?? { status: 'synced' };
  }

  /** @param problem what keeps it from being announced at all, until this is called again; empty for nothing */
  refuse(problem: string): void {
    if (problem === this.#refusal) return;
    this.#refusal = problem;
    this.#refusals.tell(problem);
  }

  /** Calls `listener` after every change of a part, with the state of the whole, until the returned function is called. Listeners must not throw. */
  onState(listener: (state: ReconcileState) => void): () => void {
    const tell = () => listener(this.state);
    const forget = [...this.parts.map((part) => part.onState(tell)), this.#refusals.add(tell)];
    return () => {
      for (const each of forget) each();
    };
  }

  /**
   * Resolves to the first state that is not `degraded`, or to the present one after that time.
   *
   * @throws `signal.reason` as soon as `signal` aborts
   */
  async settled(clock: Pick<Clock, 'sleep'>, timeoutMs: number, signal?: AbortSignal): Promise<ReconcileState> {
    let forget = () => {};
    const reached = new Promise<ReconcileState>((resolve) => {
      const check = (state: ReconcileState) => {
        if (state.status !== 'degraded') resolve(state);
      };
      forget = this.onState(check);
      check(this.state);
    });
    try {
      return (await withTimeout(clock, timeoutMs, reached, signal)) ?? this.state;
    } finally {
      forget();
    }
  }
}

/** Why several parts are degraded, reported as one reason: its end only when no part has one any more. */
export class DegradedReasons<Part extends string> {
  /** The reason of each part, empty for none; undefined while nothing was told of it. */
  readonly #reasons: Map<Part, string | undefined>;
  #reported: string | undefined;

  /**
   * @param parts those that have to tell before there is an end of all reasons
   * @param report told the reason, empty when there is none any more; not the same one twice
   */
  constructor(
    parts: readonly Part[],
    private readonly report: (reason: string) => void,
  ) {
    this.#reasons = new Map(parts.map((part) => [part, undefined]));
  }

  /** @param reason empty for none */
  tell(part: Part, reason: string): void {
    this.#reasons.set(part, reason);
    const reasons = [...this.#reasons.values()];
    const first = reasons.find((each) => each !== undefined && each !== '') ?? (reasons.includes(undefined) ? undefined : '');
    if (first === undefined || first === this.#reported) return;
    this.#reported = first;
    this.report(first);
  }
}
