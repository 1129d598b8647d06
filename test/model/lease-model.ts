/**
 * An executable copy of `lease.pml`, whose comments say why: the same state, and each step as a pure function. It returns all
 * states that it may lead to, none where it is not possible. Here are the steps of the store, the operator and the clocks, in
 * `lease-task.ts` those of a task.
 *
 * The search of `lease-states.ts` runs it by ticks, within SPIN's bounds. `explain.ts` runs it by milliseconds, with any
 * number of tasks and of late writes, along the trace of a simulated seed.
 */

/** Versions relative to the one in the object: see `lease.pml`. */
export const NONE = 0;
export const OLD = 1;
export const NOW = 2;

export type Body = 'vacant' | 'held' | 'tombstone';
export type Match = 'outdated' | 'current' | 'of vacant';
export type Place = 'nowhere' | 'planned' | 'under way' | 'late' | 'applied' | 'refused' | 'unheard';

export interface Write {
  readonly at: Place;
  readonly body: Body;
  readonly match: Match;
  readonly version: number;
  readonly claims: boolean;
  /** The duration in it. */
  readonly lasts: number;
  /** How long until its sender's clock has counted the duration. */
  readonly left: number;
  /** It is what is in the object. */
  readonly stands: boolean;
  /** What a trace calls it. The model does not look at it. */
  readonly name?: number | undefined;
}

/** The last write that is known to be applied. */
export type Known = Pick<Write, 'lasts' | 'left' | 'stands' | 'name'>;

/** Where a task is: what it waits for, or may do next. */
export type Step =
  | 'contends'
  | 'plans'
  | 'claims'
  | 'reads its claim back'
  | 'holds'
  | 'renews'
  | 'doubts'
  | 'releases'
  | 'gives back';

export interface Task {
  readonly step: Step;
  readonly version: number;
  readonly works: boolean;
  readonly known: Known;
  readonly newest: Write;
  /** Earlier writes that are late, or applied and not heard of. */
  readonly earlier: readonly Write[];
}

export interface State {
  readonly object: {
    readonly body: Body;
    readonly holder: number;
    readonly lasts: number;
    readonly trusted: boolean;
    readonly age: number;
  };
  readonly tasks: readonly Task[];
}

export interface Bounds {
  /** What a claim and a renewal may have for a duration, as any memory of the settings may have it. */
  readonly durations: readonly number[];
  /** Whether durations change (rule 14). */
  readonly tuned: boolean;
  /** The shortest and the longest grace that contenders and operators may go by. */
  readonly grace: (lasts: number) => { readonly least: number; readonly most: number };
  /** How long before the deadline a holder gives up. */
  readonly margin: (lasts: number) => number;
  /** By how much a holder's clock may lag behind the store's within one duration: each of them is possible. */
  readonly lags: readonly number[];
  /** How many writes may be late at a time. */
  readonly late: 'one' | 'one of each task' | 'any';
}

export const NO_WRITE: Write = {
  at: 'nowhere',
  body: 'vacant',
  match: 'outdated',
  version: NONE,
  claims: false,
  lasts: 0,
  left: 0,
  stands: false,
};
const NOTHING_KNOWN: Known = { lasts: 0, left: 0, stands: false };
export const NEW_TASK: Task = {
  step: 'contends',
  version: NONE,
  works: false,
  known: NOTHING_KNOWN,
  newest: NO_WRITE,
  earlier: [],
};
export const NEVER_HELD: State['object'] = { body: 'vacant', holder: 0, lasts: 0, trusted: false, age: 0 };

/** One step of a task, of the network for it, of the operator or of the clock. */
export type Act = (state: State, t: number, bounds: Bounds) => readonly State[];

export const IMPOSSIBLE: readonly State[] = [];

export function taskOf(state: State, t: number): Task {
  return state.tasks[t] as Task;
}

/** It works, or may: its own clock is before its deadline (rule 1). */
export const believesIn = ({ works, known }: Task) => works && known.left > 0;

export function withTask(state: State, t: number, change: Partial<Task>): State {
  const tasks = state.tasks.slice();
  tasks[t] = { ...taskOf(state, t), ...change };
  return { object: state.object, tasks };
}

/* The store */

/** Rule 4. */
export function isFree({ body, trusted, age, lasts }: State['object'], bounds: Bounds): boolean {
  if (body === 'vacant' || (body === 'tombstone' && !trusted)) return true;
  return age >= lasts + bounds.grace(lasts).least;
}

function fits({ match }: Write, { body }: State['object']): boolean {
  return match === 'current' || (match === 'of vacant' && body === 'vacant');
}

/** The object has changed: an etag of what was there is good for nothing any more. */
function outdated(write: Write): Write {
  if (write.at === 'unheard') return NO_WRITE;
  if (write.match === 'current') {
    if (write.at === 'under way') return { ...NO_WRITE, at: 'refused' };
    if (write.at === 'late') return NO_WRITE;
    if (write.at === 'planned') return { ...write, match: 'outdated', stands: false };
  }
  return write.stands ? { ...write, stands: false } : write;
}

const isSomewhere = ({ at }: Write) => at !== 'nowhere';

function objectChanges(task: Task): Task {
  const { known, newest, earlier } = task;
  return {
    ...task,
    known: known.stands ? { ...known, stands: false } : known,
    newest: outdated(newest),
    earlier: earlier.length === 0 ? earlier : earlier.map(outdated).filter(isSomewhere),
  };
}

const outgrown = (version: number) => (version > OLD ? version - 1 : version);
const older = (write: Write): Write => ({ ...write, version: outgrown(write.version) });

function versionRises(task: Task): Task {
  const { version, newest, earlier } = task;
  return { ...task, version: outgrown(version), newest: older(newest), earlier: earlier.map(older) };
}

/** Replaces the object by a write of task t, which `kept` puts back among its writes. */
function applied(state: State, t: number, write: Write, kept: (task: Task, applied: Write) => Task): State {
  const rises = write.version > NOW;
  const changed = (task: Task) => {
    const changes = objectChanges(task);
    return rises ? versionRises(changes) : changes;
  };
  const version = rises ? outgrown(write.version) : write.version;
  const standing: Write = { ...write, version, at: 'applied', match: 'outdated', stands: true };
  const tasks = state.tasks.map(changed);
  tasks[t] = kept(tasks[t] as Task, standing);
  const { body, lasts } = write;
  return { object: { body, holder: body === 'held' ? t : 0, lasts, trusted: false, age: 0 }, tasks };
}

/** The store applies what its sender waits for. */
export const appliesNewest = (state: State, t: number): readonly State[] => {
  const { newest } = taskOf(state, t);
  if (newest.at !== 'under way' || !fits(newest, state.object)) return IMPOSSIBLE;
  return [applied(state, t, newest, (task, write) => ({ ...task, newest: write }))];
};

/** The store refuses it: the etag does not fit, or something concurrent is in the way. */
export const refusesNewest = (state: State, t: number): readonly State[] => {
  if (taskOf(state, t).newest.at !== 'under way') return IMPOSSIBLE;
  return [withTask(state, t, { newest: { ...NO_WRITE, at: 'refused' } })];
};

/** The store applies what its sender has given up. */
export const appliesLate = (state: State, t: number): readonly State[] => {
  const { newest } = taskOf(state, t);
  if (newest.at !== 'late' || !fits(newest, state.object)) return IMPOSSIBLE;
  return [applied(state, t, newest, (task, write) => ({ ...task, newest: { ...write, at: 'unheard' } }))];
};

/** The store applies an earlier write that its sender has given up. */
export function appliesEarlier(state: State, t: number, index: number): readonly State[] {
  const write = taskOf(state, t).earlier[index];
  if (write?.at !== 'late' || !fits(write, state.object)) return IMPOSSIBLE;
  const rest = withTask(state, t, { earlier: taskOf(state, t).earlier.filter((_, at) => at !== index) });
  return [
    applied(rest, t, write, (task, standing) => {
      const isOwn = standing.body === 'held' && standing.version === task.version;
      return isOwn ? { ...task, earlier: [...task.earlier, { ...standing, at: 'unheard' }] } : task;
    }),
  ];
}

/** It never will. */
export function dropsEarlier(state: State, t: number, index: number): readonly State[] {
  const { earlier } = taskOf(state, t);
  if (earlier[index]?.at !== 'late') return IMPOSSIBLE;
  return [withTask(state, t, { earlier: earlier.filter((_, at) => at !== index) })];
}

/* The operator, and time */

/** Rule 9. */
export const evicts = (state: State, bounds: Bounds): readonly State[] => {
  const { body, age, lasts } = state.object;
  if (body !== 'held') return IMPOSSIBLE;
  const { least, most } = bounds.grace(lasts);
  const tasks = state.tasks.map((task) => versionRises(objectChanges(task)));
  const become = (trusted: boolean): State => ({
    object: { body: 'tombstone', holder: 0, lasts: trusted ? lasts : 0, trusted, age: 0 },
    tasks,
  });
  return [...(age < lasts + most ? [become(true)] : []), ...(age >= lasts + least ? [become(false)] : [])];
};

const counted = <W extends Known>(write: W, by: number): W =>
  write.left > 0 ? { ...write, left: Math.max(0, write.left - by) } : write;

/** Time passes by the clock of a task. */
export function countedDown(task: Task, by: number): Task {
  const { known, newest, earlier } = task;
  return {
    ...task,
    known: counted(known, by),
    newest: counted(newest, by),
    earlier: earlier.length === 0 ? earlier : earlier.map((write) => counted(write, by)),
  };
}

/** A tick of every clock. An age counts for as long as a task asks for it. */
export const ticks = ({ object, tasks }: State, bounds: Bounds): State => {
  const { body, trusted, age, lasts } = object;
  const counts = (body === 'held' || trusted) && age < lasts + bounds.grace(lasts).least;
  return {
    object: counts ? { ...object, age: age + 1 } : object,
    tasks: tasks.map((task) => countedDown(task, 1)),
  };
};
