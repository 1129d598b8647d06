import { leastGraceMs } from '../../src/core/lease/model/lease-state.js';
import {
  type Act,
  appliesEarlier,
  appliesLate,
  appliesNewest,
  type Bounds,
  begins,
  claims,
  countedDown,
  ends,
  evicts,
  findsClaim,
  findsLost,
  findsOwn,
  givesBack,
  givesUp,
  hasReleased,
  isDenied,
  isRefused,
  isRenewed,
  type Known,
  leaves,
  losesRace,
  NEVER_HELD,
  NEW_TASK,
  NOW,
  refusesNewest,
  releases,
  releasesAgain,
  renews,
  renewsAtOnce,
  type State,
  type Step,
  sees,
  type Task,
  taskOf,
  type Write,
} from './lease-model.js';
import type { Trace, TracedObject, TraceEvent } from './lease-trace.js';

/** What the model says of a trace. */
export interface Explanation {
  /** Events that have a path. */
  readonly events: number;
  /** Objects whose path is complete. */
  readonly objects: number;
  /** Objects that were left at an event of which the model has nothing, by what it was. */
  readonly leftOut: Readonly<Record<string, number>>;
  /** The first event that has no path. */
  readonly failure: { readonly at: number; readonly text: string } | undefined;
}

type Of<Kind extends TraceEvent['kind']> = Extract<TraceEvent, { kind: Kind }>;
type Role = 'claim' | 'renewal' | 'release' | 'copy' | 'forced release' | 'retirement' | 'creation';

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

/** Clocks are compared with some rounding, in milliseconds. */
const ROUNDING_MS = 0.001;
/** How many acts of a task may come one after the other which no event shows: it gives up, leaves and ends. */
const MOST_HIDDEN = 3;
const HIDDEN: readonly Act[] = [givesUp, leaves, ends];

/**
 * Looks for a path of the model on which all events of a trace happen. Every state that a path may have reached is kept;
 * the first event that is possible in none of them is the failure.
 *
 * A read is one step, in which the store answers. What its task makes of the answer comes when it hears it, by its clock
 * of that moment.
 */
export function explain({ vacant, events }: Trace): Explanation {
  const reads = readsBehindWrites(events);
  const settings = new Settings();
  const paths = new Map([...vacant].map(([key, etag]) => [key, new Path(key, etag, settings, reads)]));
  const created = new Map<number, TracedObject>();
  const leftOut: Record<string, number> = {};
  const leave = (what: string) => {
    leftOut[what] = (leftOut[what] ?? 0) + 1;
  };
  let explained = 0;
  for (const event of events) {
    if (event.kind === 'settings') {
      settings.add(event);
      continue;
    }
    const path = paths.get(event.key);
    if (path === undefined) {
      if (event.kind === 'sends') created.set(event.request, event.object);
      if (event.kind !== 'applied') continue;
      const isVacant = created.get(event.request)?.kind === 'vacant';
      const made = new Path(event.key, event.etag, settings, reads);
      if (!isVacant) {
        made.left = 'created by a claim';
        leave(made.left);
      }
      paths.set(event.key, made);
      continue;
    }
    if (path.left !== undefined) continue;
    const problem = path.follow(event);
    if (path.left !== undefined) leave(path.left);
    if (problem !== undefined)
      return { events: explained, objects: 0, leftOut, failure: { at: event.at, text: problem } };
    explained += 1;
  }
  const objects = [...paths.values()].filter(({ left }) => left === undefined).length;
  return { events: explained, objects, leftOut, failure: undefined };
}

/** The settings so far: a task may go by any of them. */
class Settings {
  bounds: Bounds;
  readonly #durations = new Set<number>();
  #least = Number.POSITIVE_INFINITY;
  #most = 0;

  constructor() {
    this.bounds = this.#bounds();
  }

  add({ durationMs, graceMs }: Of<'settings'>): void {
    this.#durations.add(durationMs);
    this.#least = Math.min(this.#least, graceMs);
    this.#most = Math.max(this.#most, graceMs);
    this.bounds = this.#bounds();
  }

  #bounds(): Bounds {
    const durations = [...this.#durations];
    const least = this.#least;
    const most = this.#most;
    return {
      durations,
      tuned: true,
      // In ticks an age of n is a little more than n.
      grace: (lasts) => ({
        least: Math.max(least, leastGraceMs(lasts)) + ROUNDING_MS,
        most: Math.max(most, leastGraceMs(lasts)) + ROUNDING_MS,
      }),
      margin: (lasts) => lasts / 6 - ROUNDING_MS,
      // Each task counts by its own clock.
      lags: [0],
      late: 'any',
    };
  }
}

/** The answers to reads that some writes follow from. */
interface ReadsBehindWrites {
  /** Those by which a task has claimed. */
  readonly seen: ReadonlySet<number>;
  /** For each claim and forced release: the age that its read showed. */
  readonly ages: ReadonlyMap<number, number>;
}

/** An answer: a request may be answered twice. */
const answerOf = ({ request, time }: { request: number; time: number }) => 2 * request + time;

function readsBehindWrites(events: readonly TraceEvent[]): ReadsBehindWrites {
  const shown = new Map<number, Of<'shown'>>();
  const heard = new Map<string, Of<'shown'>>();
  const seen = new Set<number>();
  const ages = new Map<number, number>();
  for (const event of events) {
    if (event.kind === 'shown') shown.set(answerOf(event), event);
    else if (event.kind === 'hears' && event.answer === 'read') {
      const answer = shown.get(answerOf(event));
      if (answer?.etag !== undefined) heard.set(`${event.task} ${event.key} ${answer.etag}`, answer);
    } else if (event.kind === 'sends' && event.etag !== undefined && !(event.object.renewal ?? 0)) {
      const answer = heard.get(`${event.task} ${event.key} ${event.etag}`);
      if (answer === undefined) continue;
      ages.set(event.request, answer.age);
      if (event.object.kind === 'held') seen.add(answerOf(answer));
    }
  }
  return { seen, ages };
}

/** The path of one lease object. */
class Path {
  /** Why it is not followed any more. */
  left: string | undefined;
  #states: readonly State[] = [{ object: NEVER_HELD, tasks: [] }];
  #version = 0;
  /** The request that wrote what is in the object, if a task holds it. */
  #standing: number | undefined;
  readonly #vacant: string;
  readonly #numbers = new Map<string, number>();
  readonly #askers = new Map<number, string>();
  /** The version that each task has claimed last. */
  readonly #claimed = new Map<number, number>();
  readonly #clocks: number[] = [];
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
    private readonly settings: Settings,
    private readonly reads: ReadsBehindWrites,
  ) {
    this.#vacant = etag;
  }

  /** @returns the problem, where the event has no path */
  follow(event: Exclude<TraceEvent, { kind: 'settings' }>): string | undefined {
    this.#problem = undefined;
    if ('clock' in event) this.#pass(event);
    const before = this.#states;
    const after = this.#after(event);
    if (after.length > 0) {
      this.#states = after.length === 1 ? after : distinct(after);
      return undefined;
    }
    return this.#reported(event, before);
  }

  #after(event: Exclude<TraceEvent, { kind: 'settings' }>): readonly State[] {
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

  #asks(event: Of<'asks'>): readonly State[] {
    this.#askers.set(event.request, event.task);
    const t = this.#numbers.get(event.task);
    if (t === undefined) return this.#states;
    this.#looks.delete(t);
    return after(this.#states, t, this.#bounds, this.#believing(event, t, mayAsk));
  }

  #isShown(event: Of<'shown'>): readonly State[] {
    const answer = answerOf(event);
    const task = this.#askers.get(event.request) ?? '';
    if (this.reads.seen.has(answer)) {
      const t = this.#numberOf(task);
      return after(this.#states, t, this.#bounds, (state, task, bounds) =>
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

  #sends(event: Of<'sends'>): readonly State[] {
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
    if (role === 'claim') this.#claimed.set(t, object.version);
    if (role === 'release' && event.until !== undefined) {
      this.#problem = 'it still believes in its lease';
      return [];
    }
    const act =
      role === 'claim' ? claims : role === 'renewal' ? this.#believing(event, t, renews) : this.#giving(t);
    const tenure = this.#claimed.get(t);
    if (object.version !== tenure) {
      this.#problem = `its version is ${object.version}, that of its tenure ${tenure}`;
      return [];
    }
    return after(this.#states, t, this.#bounds, act)
      .concat(role === 'renewal' ? this.#renewsAtOnce(event, t) : [])
      .map((state) => named(state, t, request))
      .filter((state) => this.#isSent(state, t, object, etag));
  }

  /** A renewal in the same moment as an answer that showed the task's own write. */
  #renewsAtOnce({ clock }: Of<'sends'>, t: number): readonly State[] {
    const doubt = this.#doubts.get(t);
    if (doubt?.clock !== clock) return [];
    const look = this.#looks.get(t);
    return each(doubt.states, t, this.#bounds, (state, task, bounds) =>
      renewsAtOnce(state, task, bounds, this.#seenIn(state, task, look)),
    );
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

  #applies({ request, etag }: Of<'applied'>): readonly State[] {
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
        ? evicted(state, write, rise, this.#bounds)
        : applies(state, request, rise, object),
    );
    if (states.length === 0)
      this.#problem = `it follows version ${this.#version}, at an age of ${write.age} ms, and trusts its holder for ${object.durationMs} ms`;
    this.etag = etag;
    this.#version = object.version;
    this.#standing = object.kind === 'held' ? request : undefined;
    return states;
  }

  #hears(event: Of<'hears'>): readonly State[] {
    const t = this.#numbers.get(event.task);
    if (t === undefined) return this.#states;
    const states = this.#states;
    if (event.answer === 'read') return this.#hearsRead(event, t);
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

  #hearsRead(event: Of<'hears'>, t: number): readonly State[] {
    const states = this.#states;
    const look = this.#shown.get(answerOf(event));
    this.#looks.set(t, look);
    this.#doubts.set(t, { clock: event.clock, states });
    return states.flatMap((state) => {
      const shown = this.#seenIn(state, t, look);
      const found = findsOwn(state, t, shown);
      // A contender that has lost sight of its claim may read the object as any other task.
      return found.length > 0 ? found : [...findsClaim(state, t, this.#bounds, shown), state];
    });
  }

  #holds(event: Of<'holds'>): readonly State[] {
    const t = this.#numbers.get(event.task);
    if (t === undefined) return [];
    const states = this.#states;
    // It may have lost it by then.
    if (event.until === undefined) return after(states, t, this.#bounds, isOut);
    this.#holders.add(t);
    return each(
      states,
      t,
      this.#bounds,
      this.#believing(event, t, (state) => [state]),
    );
  }

  #loses(event: Of<'loses'>): readonly State[] {
    const t = this.#numbers.get(event.task);
    if (t === undefined) return [];
    this.#holders.delete(t);
    const states = this.#states;
    if (!event.toAnother) return after(states, t, this.#bounds, isOut);
    const look = this.#looks.get(t);
    return after(states, t, this.#bounds, (state, task, bounds) =>
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

  #roleOf({ object, etag }: Of<'sends'>, t: number | undefined): Role {
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

  #reported(event: Exclude<TraceEvent, { kind: 'settings' }>, before: readonly State[]): string {
    const task = 'task' in event ? event.task : this.#askers.get(event.request);
    const t = this.#numbers.get(task ?? '');
    const states = distinct(before).map((state) => described(state, t));
    const why = this.#problem === undefined ? '' : ` (${this.#problem})`;
    return `${this.key}: ${task} ${this.#told(event)}, which the model does not allow${why}; before it ${states.join(', or ')}`;
  }

  #told(event: Exclude<TraceEvent, { kind: 'settings' }>): string {
    if (!('request' in event)) return event.kind === 'holds' ? 'holds it' : 'loses it';
    const write = this.#writes.get(event.request);
    const what = write === undefined ? 'a read' : `a ${write.role} of version ${write.object.version}`;
    if (event.kind === 'asks') return `sends ${what}`;
    if (event.kind === 'hears') return `hears of ${what}: ${event.answer}`;
    if (event.kind === 'sends') return `sends ${what}`;
    return event.kind === 'applied' ? `has ${what} applied` : `has ${what} answered`;
  }
}

type OwnRole = 'claim' | 'renewal' | 'release';
const isOwn = (role: Role): role is OwnRole => role in WRITTEN;
const WRITTEN: Readonly<Record<OwnRole, Act>> = { claim: begins, renewal: isRenewed, release: hasReleased };
const REFUSED: Readonly<Record<OwnRole, Act>> = {
  claim: losesRace,
  renewal: isRefused,
  release: releasesAgain,
};

const markOf = ({ nonce, renewal }: TracedObject) => `${nonce} ${renewal}`;

const MAY_ASK: readonly Step[] = ['contends', 'plans', 'reads its claim back', 'doubts', 'releases'];
const mayAsk: Act = (state, t) => (MAY_ASK.includes(taskOf(state, t).step) ? [state] : []);
const isOut: Act = (state, t) => (taskOf(state, t).step === 'contends' ? [state] : []);

function each(states: readonly State[], t: number, bounds: Bounds, act: Act): readonly State[] {
  return states.flatMap((state) => act(state, t, bounds));
}

/** The states after an act of a task, and before it as few as possible that no event shows. */
function after(states: readonly State[], t: number, bounds: Bounds, act: Act): readonly State[] {
  let from = states;
  for (let hidden = 0; ; hidden += 1) {
    const next = each(from, t, bounds, act);
    if (next.length > 0 || hidden === MOST_HIDDEN) return next;
    from = HIDDEN.flatMap((step) => each(from, t, bounds, step));
  }
}

function writeOf({ newest, earlier, known }: Task, name: number): Known | undefined {
  return [newest, ...earlier, known].find((write) => write.name === name);
}

/** Rule 9, by the age that the operator has read. */
function evicted(state: State, { age, object }: SentWrite, rise: number, bounds: Bounds): readonly State[] {
  if (rise !== 1) return [];
  const read = { ...state, object: { ...state.object, age } };
  return evicts(read, bounds).filter(({ object: { lasts } }) => lasts === object.durationMs);
}

/** The store applies the write of this request, by whichever task, under way or late. */
function applies(state: State, request: number, rise: number, { kind }: TracedObject): readonly State[] {
  const isIt = ({ name, version, body }: Write) =>
    name === request && version - NOW === rise && (body === 'held') === (kind === 'held');
  const t = state.tasks.findIndex(({ newest, earlier }) => isIt(newest) || earlier.some(isIt));
  if (t < 0) return [];
  const { newest, earlier } = taskOf(state, t);
  if (!isIt(newest)) return appliesEarlier(state, t, earlier.findIndex(isIt));
  return newest.at === 'late' ? appliesLate(state, t) : appliesNewest(state, t);
}

function named({ object, tasks }: State, t: number, name: number): State {
  const task = tasks[t] as Task;
  return { object, tasks: tasks.with(t, { ...task, newest: { ...task.newest, name } }) };
}

function distinct(states: readonly State[]): readonly State[] {
  return [...new Map(states.map((state) => [JSON.stringify(state), state])).values()];
}

function described({ object, tasks }: State, t: number | undefined): string {
  const task = t === undefined ? undefined : tasks[t];
  const shown = `the object is ${object.body}`;
  if (task === undefined) return `${shown} and the task unknown`;
  const { step, known, newest, earlier } = task;
  const own = known.lasts > 0 ? ` with ${known.left.toFixed(1)} ms left of ${known.lasts}` : '';
  const late = earlier.length === 0 ? '' : `, ${earlier.length} earlier`;
  return `${shown}, ${known.stands ? 'as it knows it, ' : ''}and the task ${step}${own}, its newest write ${newest.at}${late}`;
}
