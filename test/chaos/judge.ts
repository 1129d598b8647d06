import type { Act, ActorKind } from './act.js';

/** What one task did under one node id and version. Times are microseconds of CLOCK_MONOTONIC. */
export interface Tenure {
  readonly nodeId: number;
  readonly version: number;
  readonly taskId: string;
  readonly kind: ActorKind;
  acts: number;
  /** The earliest time by which it certainly held the id to be its own. */
  believedBy: number;
  /** The latest time at which it still did, or would: it asked after that. */
  believedUntil: number;
}

/** A broken promise. */
export type Violation =
  /**
   * `earlier` acted when `later`, of a higher version, had the id already. Either the tasks' clock readings
   * or the order of arrival shows it.
   */
  | {
      readonly type: 'overlap';
      readonly by: 'clock' | 'arrival';
      readonly earlier: Tenure;
      readonly later: Tenure;
      readonly byMicros: number;
    }
  /** Two tasks acted under one node id and version. */
  | { readonly type: 'repeated-version'; readonly first: Tenure; readonly second: Tenure };

/** What was seen so far. */
export interface Findings {
  readonly acts: number;
  readonly tenures: readonly Tenure[];
  readonly violations: readonly Violation[];
  /** Acts that did not get into the pipe, by the gaps in the tasks' sequences. */
  readonly lost: number;
  /** Acts that came out of their task's order: the pipe is no queue, and nothing here can be trusted. */
  readonly disordered: number;
  /**
   * Acts of library tasks that arrived after those of a newer tenure, having been decided on before it began:
   * the process was paused between asking `isValid()` and acting. No lease can prevent that; it is what the
   * receiver checks versions for.
   */
  readonly late: number;
}

/** The same at a glance, for as long as it goes on: the number of tenures only. */
export interface Glance extends Omit<Findings, 'tenures'> {
  readonly tenures: number;
}

/**
 * Decides whether node ids were ever used by two tasks at a time, from nothing but the acts.
 *
 * Acts come through one named pipe, in which the kernel keeps one order for all writers: each short write is
 * put in whole, under one lock, before the write returns. (UDP on the loopback interface keeps no order
 * between senders on different processors.) A task's beginning is known from its first act, so overlaps
 * shorter than the pause between two acts, some 5 ms, can go unseen. Everything else is exact:
 *
 * - *By clock.* A task asks for the time, makes sure that it holds the id, asks again, and acts. It made sure
 *   somewhere between the two readings, however long it was stopped in between. So it certainly had the id at
 *   `after` at the latest, and its certainty is not older than `before`. If `before` of one tenure is past
 *   `after` of a tenure with a higher version, both of them believed at once, or in the wrong order. One
 *   clock for all, so there is no false alarm; and since all acts are kept as two numbers a tenure, it makes
 *   no difference which of two acts arrives first.
 * - *By arrival.* The command of `nodelease run` does not ask. That it must not act is seen to from outside,
 *   by killing it, if need be while it is stopped; so the very arrival of its act counts: once an act of a
 *   higher version has arrived, every further one is an overlap, even if its clock was read before a pause.
 *   For a program that uses the library this would be a false alarm: nothing can stop it between its question
 *   and its act. Such acts are counted as `late`.
 */
export class Judge {
  readonly #histories = new Map<number, History>();
  readonly #sequences = new Map<string, number>();
  readonly #violations = new Map<string, Violation>();
  #acts = 0;
  #lost = 0;
  #disordered = 0;
  #late = 0;

  /** Takes the acts in the order of their arrival. */
  see(act: Act): void {
    this.#acts += 1;
    this.#count(act);
    const history = this.#histories.get(act.nodeId) ?? { tenures: [], newest: undefined };
    this.#histories.set(act.nodeId, history);
    const own =
      history.tenures.findLast(({ version, taskId }) => version === act.version && taskId === act.taskId) ??
      begin(act, history);
    const alreadyCompared = own === history.newest && own.believedBy <= act.after;
    own.acts += 1;
    own.believedBy = Math.min(own.believedBy, act.after);
    own.believedUntil = Math.max(own.believedUntil, act.before);
    // One more act of the newest tenure cannot be at odds with those before it: only how early it began
    // could.
    if (alreadyCompared) return;
    for (const other of history.tenures) {
      if (other === own) continue;
      if (other.version === own.version)
        this.#report({ type: 'repeated-version', first: other, second: own });
      else if (other.version < own.version) this.#compare(other, own);
      else if (!this.#compare(own, other)) this.#arrivedAfter(own, other);
    }
  }

  get findings(): Findings {
    return {
      acts: this.#acts,
      tenures: [...this.#histories.values()].flatMap(({ tenures }) => tenures),
      violations: [...this.#violations.values()],
      lost: this.#lost,
      disordered: this.#disordered,
      late: this.#late,
    };
  }

  get glance(): Glance {
    return { ...this.findings, tenures: this.findings.tenures.length };
  }

  #count({ nodeId, version, taskId, sequence }: Act): void {
    const task = `${nodeId} ${version} ${taskId}`;
    const expected = this.#sequences.get(task) ?? 0;
    if (sequence < expected) {
      this.#disordered += 1;
      return;
    }
    this.#lost += sequence - expected;
    this.#sequences.set(task, sequence + 1);
  }

  /** True when the two overlap by the clock. */
  #compare(earlier: Tenure, later: Tenure): boolean {
    const byMicros = earlier.believedUntil - later.believedBy;
    if (byMicros <= 0) return false;
    this.#report({ type: 'overlap', by: 'clock', earlier, later, byMicros });
    return true;
  }

  #arrivedAfter(earlier: Tenure, later: Tenure): void {
    if (earlier.kind === 'run') this.#report({ type: 'overlap', by: 'arrival', earlier, later, byMicros: 0 });
    else this.#late += 1;
  }

  /** One report for two tenures, the worst: what follows a first overlap is more of the same. */
  #report(violation: Violation): void {
    const [one, two] =
      violation.type === 'overlap'
        ? [violation.earlier, violation.later]
        : [violation.first, violation.second];
    const tasks = [one, two].map(({ version, taskId }) => `${version} ${taskId}`).sort();
    const key = `${violation.type} ${one.nodeId} ${tasks.join(' ')}`;
    const known = this.#violations.get(key);
    if (known?.type === 'overlap' && violation.type === 'overlap' && known.byMicros >= violation.byMicros)
      return;
    this.#violations.set(key, violation);
  }
}

/** The tenures of one node id, in the order of their first acts. */
interface History {
  readonly tenures: Tenure[];
  /** The one of the highest version. */
  newest: Tenure | undefined;
}

function begin({ nodeId, version, taskId, kind }: Act, history: History): Tenure {
  const tenure = {
    nodeId,
    version,
    taskId,
    kind,
    acts: 0,
    believedBy: Number.POSITIVE_INFINITY,
    believedUntil: Number.NEGATIVE_INFINITY,
  };
  history.tenures.push(tenure);
  if (history.newest === undefined || history.newest.version < version) history.newest = tenure;
  return tenure;
}
