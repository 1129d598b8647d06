import {
  type Act,
  type Bounds,
  countedDown,
  type Known,
  NEVER_HELD,
  NEW_TASK,
  NO_WRITE,
  OLD,
  refusesNewest,
  type State,
  type Task,
  taskOf,
  withTask,
} from './lease-model.js';
import {
  begins,
  claims,
  findsClaim,
  findsLost,
  findsOwn,
  givesBack,
  givesUp,
  hasReleased,
  isDenied,
  isRefused,
  isRenewed,
  losesRace,
  releases,
  releasesAgain,
  renews,
  renewsAtOnce,
  renewsLate,
  sees,
} from './lease-task.js';
import { answerOf, type ObjectEvent, type Stops, type Traced, type TracedObject } from './lease-trace.js';
import {
  applies,
  described,
  distinct,
  each,
  evicted,
  isOut,
  mayAsk,
  named,
  reached,
  writeOf,
} from './path-steps.js';
import { ROUNDING_MS, type TracedSettings } from './traced-settings.js';

/** How long a real task takes at most from an answer to the write that follows from it, in milliseconds. */
const AT_ONCE_MS = 200;

type Role = 'claim' | 'renewal' | 'release' | 'copy' | 'forced release' | 'retirement' | 'creation';
type OwnRole = 'claim' | 'renewal' | 'release';
const isOwn = (role: Role): role is OwnRole => role in WRITTEN;
const WRITTEN: Readonly<Record<OwnRole, Act>> = { claim: begins, renewal: isRenewed, release: hasReleased };
const REFUSED: Readonly<Record<OwnRole, Act>> = {
  claim: losesRace,
  renewal: isRefused,
  release: releasesAgain,
};

const markOf = ({ nonce, renewal }: TracedObject) => `${nonce} ${renewal}`;

/** A write, as its sender has sent it. */
interface SentWrite {
  readonly role: Role;
  readonly object: TracedObject;
  /** The age by which an operator has decided. */
  readonly age: number;
}

/** A write of a task's own that the store has shown it, as it was at that moment. */
interface Look {
  readonly write: Known;
  /** The clock of the task by which it was so. */
  readonly clock: number;
}

/** The answers to reads that some writes follow from. */
export interface ReadsBehindWrites {
  /** Those by which a task has claimed. */
  readonly seen: ReadonlySet<number>;
  /** For each claim and forced release: the age that its read showed. */
  readonly ages: ReadonlyMap<number, number>;
}

/** The path of one lease object. */
export class LeasePath {
  /** Why it is not followed any more. */
  left: string | undefined;
  /** How many renewals were sent past the stop point: by a task that was stopped, or right after a read. */
  late = 0;
  #states: readonly State[] = [{ object: NEVER_HELD, tasks: [] }];
  #version = 0;
  /** The request that wrote what is in the object, if a task holds it. */
  #standing: number | undefined;
  readonly #vacant: string;
  readonly #numbers = new Map<string, number>();
  readonly #askers = new Map<number, string>();
  /** The version that each task has claimed last, and the request. */
  readonly #claimed = new Map<number, { readonly version: number; readonly request: number }>();
  readonly #clocks: number[] = [];
  /** When each task had its last event. The answer to a read does not count: a renewal may follow in the same attempt. */
  readonly #lastAt = new Map<string, number>();
  /** When each task has heard the answer to a read, if it has done nothing since. */
  readonly #lookedAt = new Map<string, number>();
  readonly #writes = new Map<number, SentWrite>();
  readonly #sent = new Set<string>();
  /** What each answer to a read has shown. */
  readonly #shown = new Map<number, Look | undefined>();
  /** What each task has read last, in doubt of its writes. */
  readonly #looks = new Map<number, Look | undefined>();
  /** When each task has heard that, by its clock, and the states before. */
  readonly #doubts = new Map<number, { readonly clock: number; readonly states: readonly State[] }>();
  /** The tasks that have got a lease, and not reported its loss. */
  readonly #holders = new Set<number>();
  #problem: string | undefined;

  constructor(
    private readonly key: string,
    private etag: string,
    private readonly settings: TracedSettings,
    private readonly reads: ReadsBehindWrites,
    private readonly stops: Stops = new Map(),
  ) {
    this.#vacant = etag;
  }

  /** @returns the problem, where the event has no path */
  follow(event: ObjectEvent): string | undefined {
    this.#problem = undefined;
    if ('clock' in event) this.#pass(event);
    const next = this.#after(event);
    if (next.length === 0) return this.#reported(event);
    this.#states = next.length === 1 ? next : distinct(next);
    const isLook = event.kind === 'hears' && event.answer === 'read';
    if (isLook) this.#lookedAt.set(event.task, event.at);
    else if ('clock' in event) {
      this.#lastAt.set(event.task, event.at);
      this.#lookedAt.delete(event.task);
    }
    return undefined;
  }

  #after(event: ObjectEvent): readonly State[] {
    switch (event.kind) {
      case 'asks':
        return this.#asks(event);
      case 'shown':
        return this.#isShown(event);
      case 'sends':
        return this.#sends(event);
      case 'applied':
        return this.#applies(event);
      case 'hears':
        return this.#hears(event);
      case 'holds':
        return this.#holds(event);
      case 'loses':
        return this.#loses(event);
    }
  }

  #asks(event: Traced<'asks'>): readonly State[] {
    this.#askers.set(event.request, event.task);
    const t = this.#numbers.get(event.task);
    if (t === undefined) return this.#states;
    this.#looks.delete(t);
    return reached(this.#states, t, this.#bounds, this.#believing(event, t, mayAsk));
  }

  #isShown(event: Traced<'shown'>): readonly State[] {
    const answer = answerOf(event);
    const task = this.#askers.get(event.request) ?? '';
    if (this.reads.seen.has(answer)) {
      const t = this.#numberOf(task);
      return reached(this.#states, t, this.#bounds, (state, task, bounds) =>
        sees({ ...state, object: { ...state.object, age: event.age } }, task, bounds),
      );
    }
    const t = this.#numbers.get(task);
    const name = this.#standing;
    const [state] = this.#states;
    if (t === undefined || name === undefined || state === undefined) return this.#states;
    const write = writeOf(taskOf(state, t), name);
    if (write !== undefined) this.#shown.set(answer, { write, clock: this.#clocks[t] ?? 0 });
    return this.#states;
  }

  #sends(event: Traced<'sends'>): readonly State[] {
    const { request, task, object, etag } = event;
    this.#askers.set(request, task);
    const t = this.#numbers.get(task);
    const role = this.#roleOf(event, t);
    this.#writes.set(request, { role, object, age: this.reads.ages.get(request) ?? 0 });
    if (t === undefined || !isOwn(role)) {
      if (role === 'claim') this.#problem = 'it has not read that the id is free';
      return role === 'claim' || role === 'renewal' ? [] : this.#states;
    }
    this.#sent.add(markOf(object));
    if (role === 'claim') this.#claimed.set(t, { version: object.version, request });
    if (role === 'release' && event.until !== undefined) {
      this.#problem = 'it still believes in its lease';
      return [];
    }
    const act =
      role === 'claim' ? claims : role === 'renewal' ? this.#believing(event, t, renews) : this.#giving(t);
    const tenure = this.#claimed.get(t)?.version;
    if (object.version !== tenure) {
      this.#problem = `its version is ${object.version}, that of its tenure ${tenure}`;
      return [];
    }
    return reached(this.#states, t, this.#bounds, act)
      .concat(role === 'renewal' ? [...this.#renewsAtOnce(event, t), ...this.#renewsLate(event, t)] : [])
      .map((state) => named(state, t, request))
      .filter((state) => this.#isSent(state, t, object, etag));
  }

  /** A renewal in the same moment as an answer that showed the task's own write. */
  #renewsAtOnce({ clock }: Traced<'sends'>, t: number): readonly State[] {
    const doubt = this.#doubts.get(t);
    if (doubt?.clock !== clock) return [];
    const look = this.#looks.get(t);
    return each(doubt.states, t, this.#bounds, (state, task, bounds) =>
      renewsAtOnce(state, task, bounds, this.#seenIn(state, task, look)),
    );
  }

  #renewsLate(event: Traced<'sends'>, t: number): readonly State[] {
    if (!this.#wasStopped(event) && !this.#hasJustLooked(event)) return [];
    const late = each(this.#states, t, this.#bounds, this.#believing(event, t, renewsLate));
    if (late.length > 0) this.late += 1;
    return late;
  }

  /** Whether a task was stopped since its event before this one. */
  #wasStopped({ task, at }: Traced<'sends'>): boolean {
    const since = this.#lastAt.get(task) ?? at;
    return this.stops.get(task)?.some((moment) => moment > since && moment < at) === true;
  }

  /** Whether a real task sends it in the attempt that has just read: that may have begun before the stop point. */
  #hasJustLooked({ task, at }: Traced<'sends'>): boolean {
    return this.stops.has(task) && at - (this.#lookedAt.get(task) ?? 0) < AT_ONCE_MS;
  }

  /** Whether the model has sent the same write: with this duration, on this condition. */
  #isSent(state: State, t: number, { durationMs }: TracedObject, etag: string | undefined): boolean {
    const { newest } = taskOf(state, t);
    const { match, lasts } = newest;
    const isCurrent = etag === this.etag;
    const isMatch = match === 'of vacant' ? etag === this.#vacant : isCurrent === (match === 'current');
    if (isMatch && durationMs === lasts) return true;
    this.#problem = isMatch
      ? `its duration is ${durationMs} ms, that of the model ${lasts} ms`
      : `its condition is ${isCurrent ? 'the present' : 'an outdated'} etag, that of the model ${match}`;
    return false;
  }

  #applies({ request, etag }: Traced<'applied'>): readonly State[] {
    const write = this.#writes.get(request);
    if (write === undefined) return [];
    const { role, object } = write;
    if (role === 'retirement') {
      this.left = 'retired';
      return this.#states;
    }
    const rise = object.version - this.#version;
    const states = this.#states.flatMap((state) =>
      role === 'forced release'
        ? evicted(state, write.age, rise, object, this.#bounds)
        : applies(state, request, rise, object),
    );
    if (states.length === 0)
      this.#problem = `it follows version ${this.#version}, at an age of ${write.age} ms, and trusts its holder for ${object.durationMs} ms`;
    this.etag = etag;
    this.#version = object.version;
    this.#standing = object.kind === 'held' ? request : undefined;
    return states;
  }

  #hears(event: Traced<'hears'>): readonly State[] {
    const t = this.#numbers.get(event.task);
    if (t === undefined) return this.#states;
    if (event.answer === 'read') return this.#hearsRead(event, t);
    const states = this.#states;
    const role = this.#writes.get(event.request)?.role;
    if (role === undefined || !isOwn(role)) return states;
    if (event.answer === 'unknown') return each(states, t, this.#bounds, givesUp);
    if (event.answer === 'written') return each(states, t, this.#bounds, WRITTEN[role]);
    if (event.answer === 'not applied' && role === 'renewal') return each(states, t, this.#bounds, isDenied);
    const refused = states.flatMap((state) => {
      const { at } = taskOf(state, t).newest;
      return at === 'under way' ? refusesNewest(state, t) : [state];
    });
    // The second answer to a request that was applied the first time.
    const isApplied = (state: State) => taskOf(state, t).newest.at === 'applied';
    return refused.flatMap((state) => (isApplied(state) ? givesUp : REFUSED[role])(state, t, this.#bounds));
  }

  #hearsRead(event: Traced<'hears'>, t: number): readonly State[] {
    const states = this.#states;
    const look = this.#shown.get(answerOf(event));
    this.#looks.set(t, look);
    this.#doubts.set(t, { clock: event.clock, states });
    return states.flatMap((state) => {
      const shown = this.#seenIn(state, t, look);
      const found = findsOwn(state, t, shown);
      // A contender that has lost sight of its claim may read the object as any other task.
      return found.length > 0
        ? found
        : [...findsClaim(this.#withClaim(state, t, shown), t, this.#bounds, shown), state];
    });
  }

  /** With the claim that an answer has shown, though another write has replaced it while the answer was on its way. */
  #withClaim(state: State, t: number, shown: Known | undefined): State {
    const { step, newest } = taskOf(state, t);
    const isGone = step === 'reads its claim back' && newest.at === 'nowhere';
    if (!isGone || shown === undefined || shown.name !== this.#claimed.get(t)?.request) return state;
    return withTask(state, t, {
      newest: { ...NO_WRITE, ...shown, at: 'unheard', version: OLD, stands: false },
    });
  }

  #holds(event: Traced<'holds'>): readonly State[] {
    const t = this.#numbers.get(event.task);
    if (t === undefined) return [];
    // It may have lost it by then.
    if (event.until === undefined) return reached(this.#states, t, this.#bounds, isOut);
    this.#holders.add(t);
    const same = this.#believing(event, t, (state) => [state]);
    return each(this.#states, t, this.#bounds, same);
  }

  #loses(event: Traced<'loses'>): readonly State[] {
    const t = this.#numbers.get(event.task);
    if (t === undefined) return [];
    this.#holders.delete(t);
    if (!event.toAnother) return reached(this.#states, t, this.#bounds, isOut);
    if (!this.#looks.has(t)) return [];
    const look = this.#looks.get(t);
    return reached(this.#states, t, this.#bounds, (state, task, bounds) =>
      findsLost(state, task, bounds, this.#seenIn(state, task, look)),
    );
  }

  /** What a look of a task has shown: it may have been replaced meanwhile. */
  #seenIn(state: State, t: number, look: Look | undefined): Known | undefined {
    if (look === undefined) return undefined;
    const { write, clock } = look;
    const left = Math.max(0, write.left - ((this.#clocks[t] ?? clock) - clock));
    return writeOf(taskOf(state, t), write.name ?? 0) ?? { ...write, left, stands: false };
  }

  get #bounds(): Bounds {
    return this.settings.bounds;
  }

  #numberOf(task: string): number {
    const known = this.#numbers.get(task);
    if (known !== undefined) return known;
    const t = this.#numbers.size;
    this.#numbers.set(task, t);
    this.#states = this.#states.map(({ object, tasks }) => ({ object, tasks: [...tasks, NEW_TASK] }));
    return t;
  }

  /** Time passes by a task's clock. */
  #pass({ task, clock }: { readonly task: string; readonly clock: number }): void {
    const t = this.#numbers.get(task);
    if (t === undefined) return;
    const by = clock - (this.#clocks[t] ?? clock);
    this.#clocks[t] = clock;
    if (by === 0) return;
    this.#states = this.#states.map(({ object, tasks }) => ({
      object,
      tasks: tasks.with(t, countedDown(tasks[t] as Task, by)),
    }));
  }

  /** The same act, if the task then believes until the same moment as in the trace. */
  #believing(
    { until, clock }: { readonly until?: number | undefined; readonly clock: number },
    t: number,
    act: Act,
  ): Act {
    if (until === undefined && !this.#holders.has(t)) return act;
    const left = until === undefined ? 0 : until - clock;
    const isSame = (state: State) => {
      const task = taskOf(state, t);
      const leftThere = task.works ? task.known.left : 0;
      if (until === undefined ? leftThere === 0 : Math.abs(leftThere - left) < ROUNDING_MS) return true;
      if (task.works)
        this.#problem = `it believes for ${left.toFixed(3)} ms, in the model for ${leftThere.toFixed(3)} ms`;
      return false;
    };
    return (state, task, bounds) => act(state, task, bounds).filter(isSame);
  }

  #roleOf({ object, etag }: Traced<'sends'>, t: number | undefined): Role {
    if (object.kind === 'vacant') return 'creation';
    if (object.kind === 'retired') return 'retirement';
    if (object.kind === 'released') return t === undefined ? 'forced release' : 'release';
    if (object.renewal !== 0) return 'renewal';
    if (etag === undefined) return 'creation';
    return this.#sent.has(markOf(object)) ? 'copy' : 'claim';
  }

  #giving(t: number): Act {
    const hasLooked = this.#looks.has(t);
    const look = this.#looks.get(t);
    return (state, task, bounds) =>
      hasLooked && taskOf(state, task).step === 'releases'
        ? givesBack(state, task, bounds, this.#seenIn(state, task, look))
        : releases(state, task, bounds);
  }

  #reported(event: ObjectEvent): string {
    const task = 'task' in event ? event.task : this.#askers.get(event.request);
    const t = this.#numbers.get(task ?? '');
    const states = this.#states.map((state) => described(state, t));
    const why = this.#problem === undefined ? '' : ` (${this.#problem})`;
    return `${this.key}: ${task} ${this.#told(event)}, which the model does not allow${why}; before it ${states.join(', or ')}`;
  }

  #told(event: ObjectEvent): string {
    if (!('request' in event)) return event.kind === 'holds' ? 'holds it' : 'loses it';
    const write = this.#writes.get(event.request);
    const what = write === undefined ? 'a read' : `a ${write.role} of version ${write.object.version}`;
    if (event.kind === 'asks') return `sends ${what}`;
    if (event.kind === 'hears') return `hears of ${what}: ${event.answer}`;
    if (event.kind === 'sends') return `sends ${what}`;
    return event.kind === 'applied' ? `has ${what} applied` : `has ${what} answered`;
  }
}
