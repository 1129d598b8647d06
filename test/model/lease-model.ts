/**
 * An executable copy of `lease.pml`: the same state, and each of its steps as a pure function, by the names and in the order
 * of that file. The comments there say why. A step returns all states that it may lead to, none where it is not possible.
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

const NO_WRITE: Write = {
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

const IMPOSSIBLE: readonly State[] = [];

export function taskOf(state: State, t: number): Task {
  return state.tasks[t] as Task;
}

/** It works, or may: its own clock is before its deadline (rule 1). */
export const believesIn = ({ works, known }: Task) => works && known.left > 0;

function withTask(state: State, t: number, change: Partial<Task>): State {
  const tasks = state.tasks.slice();
  tasks[t] = { ...taskOf(state, t), ...change };
  return { object: state.object, tasks };
}

/* The store */

function isFree({ body, trusted, age, lasts }: State['object'], bounds: Bounds): boolean {
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

/* A task */

const inTime = ({ left, lasts }: Known, { margin }: Bounds) => left > margin(lasts);

/** The clock is read, then the request is sent (rule 3). */
function started(write: Write, { durations, lags }: Bounds): Write[] {
  return durations.flatMap((lasts) => lags.map((lag) => ({ ...write, lasts, left: lasts + lag })));
}

/** Rule 14: by the holder's own clock no deadline moves back. */
function neverBack(write: Write, known: Known, { durations, lags }: Bounds): Write[] {
  return durations.flatMap((duration) =>
    lags.flatMap((lag) => {
      const remains = Math.min(known.lasts, Math.ceil(known.left - lag));
      const lasts = Math.max(duration, remains);
      const left = Math.max(lasts, known.left);
      return lags.map((more) => ({
        ...write,
        lasts,
        left: Math.max(left, Math.min(left + more, lasts + more)),
      }));
    }),
  );
}

function madeRoom({ newest, earlier }: Task, { late }: Bounds): readonly Write[] {
  // With an answer that is under way, a write may be applied after the read that does not show it.
  if (late === 'any') return newest.at === 'late' || newest.at === 'unheard' ? [...earlier, newest] : earlier;
  return newest.at !== 'late' ? earlier : [{ ...newest, stands: earlier[0]?.stands === true }];
}

/** A task sends a write other than a claim. */
function sent(state: State, t: number, bounds: Bounds, step: Step, body: Body): readonly State[] {
  const task = taskOf(state, t);
  const { known, version } = task;
  const match: Match = known.stands ? 'current' : 'outdated';
  const write: Write = { ...NO_WRITE, at: 'under way', body, match, version };
  const earlier = madeRoom(task, bounds);
  const writes =
    body === 'tombstone' ? [write] : bounds.tuned ? neverBack(write, known, bounds) : started(write, bounds);
  return writes.map((newest) => withTask(state, t, { step, earlier, newest }));
}

/** A time-out, a lost connection, 500 or 503: applied or not, now, later, or never. */
export const givesUp: Act = (state, t, { late }) => {
  const { step, newest } = taskOf(state, t);
  const next = AFTER_GIVING_UP[step];
  if (next === undefined) return IMPOSSIBLE;
  const become = (write: Write) => withTask(state, t, { step: next, newest: write });
  if (newest.at === 'applied') return [become({ ...newest, at: 'unheard' })];
  if (newest.at === 'refused') return [become(NO_WRITE)];
  if (newest.at !== 'under way') return IMPOSSIBLE;
  const others = late === 'one' ? state.tasks : [taskOf(state, t)];
  const hasLate = (task: Task) => task.newest.at === 'late' || task.earlier.some(({ at }) => at === 'late');
  // A late write may always come to nothing, so where any number is late nothing needs to be forgotten.
  if (late === 'any') return [become({ ...newest, at: 'late' })];
  return others.some(hasLate) ? [become(NO_WRITE)] : [become({ ...newest, at: 'late' }), become(NO_WRITE)];
};
const AFTER_GIVING_UP: Partial<Record<Step, Step>> = {
  claims: 'reads its claim back',
  renews: 'doubts',
  'gives back': 'releases',
};

/** The last write known to be applied is this one (rule 3). */
const adopted = ({ lasts, left, stands, name }: Known): Known => ({ lasts, left, stands, name });

function ended(state: State, t: number, bounds: Bounds): State {
  const late = madeRoom(taskOf(state, t), bounds).filter(({ at }) => at === 'late');
  return withTask(state, t, { ...NEW_TASK, earlier: late.map((write) => ({ ...write, left: 0 })) });
}

function begun(state: State, t: number): State {
  const { newest } = taskOf(state, t);
  const { version } = newest;
  return withTask(state, t, {
    step: 'holds',
    version,
    works: true,
    known: adopted(newest),
    newest: NO_WRITE,
  });
}

/** It sees that the id is free (rule 4). */
export const sees: Act = (state, t, bounds) => {
  if (taskOf(state, t).step !== 'contends' || !isFree(state.object, bounds)) return IMPOSSIBLE;
  const match: Match = state.object.body === 'vacant' ? 'of vacant' : 'current';
  return [
    withTask(state, t, { step: 'plans', newest: { ...NO_WRITE, at: 'planned', version: NOW + 1, match } }),
  ];
};

export const claims: Act = (state, t, bounds) => {
  const { step, newest } = taskOf(state, t);
  if (step !== 'plans') return IMPOSSIBLE;
  return started({ ...newest, at: 'under way', body: 'held', claims: true }, bounds).map((write) =>
    withTask(state, t, { step: 'claims', newest: write }),
  );
};

/** It hears that its claim was applied. */
export const begins: Act = (state, t, bounds) => {
  const { step, newest } = taskOf(state, t);
  if (step !== 'claims' || newest.at !== 'applied') return IMPOSSIBLE;
  return [inTime(newest, bounds) ? begun(state, t) : ended(state, t, bounds)];
};

/** It hears that its claim was refused. */
export const losesRace: Act = (state, t, bounds) => {
  const { step, newest } = taskOf(state, t);
  return step === 'claims' && newest.at === 'refused' ? [ended(state, t, bounds)] : IMPOSSIBLE;
};

/** The write of a task's own that the object shows. */
export function shownBy({ object, tasks }: State, t: number): Known | undefined {
  const { newest, earlier, known } = tasks[t] as Task;
  if (object.body !== 'held') return undefined;
  return [newest, ...earlier, known].find(({ stands }) => stands);
}

const isSame = (write: Known, shown: Known) =>
  write === shown || (write.name !== undefined && write.name === shown.name);

/** Rule 5: the object shows its claim. */
export function findsClaim(
  state: State,
  t: number,
  bounds: Bounds,
  shown: Known | undefined,
): readonly State[] {
  const { step, newest } = taskOf(state, t);
  if (step !== 'reads its claim back' || shown === undefined || !isSame(newest, shown)) return IMPOSSIBLE;
  if (!inTime(newest, bounds)) return IMPOSSIBLE;
  return [begun(state, t)];
}

export const renews: Act = (state, t, bounds) => {
  const { step, known } = taskOf(state, t);
  if (step !== 'holds' || !inTime(known, bounds)) return IMPOSSIBLE;
  return sent(state, t, bounds, 'renews', 'held');
};

/** It hears that its renewal was applied. */
export const isRenewed: Act = (state, t, bounds) => {
  const { step, newest, known } = taskOf(state, t);
  if (step !== 'renews' || newest.at !== 'applied') return IMPOSSIBLE;
  if (known.left <= 0) return [ended(state, t, bounds)];
  return [withTask(state, t, { step: 'holds', known: adopted(newest), newest: NO_WRITE })];
};

/** It hears that it may not write, as by a 403: it was certainly not applied, and says nothing of the object. */
export const isDenied: Act = (state, t) => {
  const { step, newest } = taskOf(state, t);
  if (step !== 'renews' || (newest.at !== 'under way' && newest.at !== 'refused')) return IMPOSSIBLE;
  return [withTask(state, t, { step: 'holds', newest: NO_WRITE })];
};

/** It hears that its renewal was refused. */
export const isRefused: Act = (state, t) => {
  const { step, newest } = taskOf(state, t);
  if (step !== 'renews' || newest.at !== 'refused') return IMPOSSIBLE;
  return [withTask(state, t, { step: 'doubts', newest: NO_WRITE })];
};

/** Rule 5: what a task knows after the object has shown a write of its own. */
function readBack(
  { known, newest, earlier }: Task,
  shown: Known,
): Pick<Task, 'known' | 'newest' | 'earlier'> {
  if (isSame(known, shown)) return { known, newest, earlier };
  return {
    known: adopted(shown),
    newest: isSame(newest, shown) ? NO_WRITE : newest,
    earlier: earlier.filter((write) => !isSame(write, shown)),
  };
}

/** The object shows that it still holds the id. */
export function findsOwn(state: State, t: number, shown: Known | undefined): readonly State[] {
  const task = taskOf(state, t);
  if (task.step !== 'doubts' || shown === undefined || task.known.left <= 0) return IMPOSSIBLE;
  return [withTask(state, t, { step: 'holds', ...readBack(task, shown) })];
}

/** It does, and the write of the same attempt follows: the attempt may have begun before the stop point. */
export function renewsAtOnce(
  state: State,
  t: number,
  bounds: Bounds,
  shown: Known | undefined,
): readonly State[] {
  return findsOwn(state, t, shown).flatMap((found) => sent(found, t, bounds, 'renews', 'held'));
}

/** The object shows that another task, or none, holds it. */
export function findsLost(
  state: State,
  t: number,
  bounds: Bounds,
  shown: Known | undefined,
): readonly State[] {
  if (taskOf(state, t).step !== 'doubts' || shown !== undefined) return IMPOSSIBLE;
  return [ended(state, t, bounds)];
}

/** Rule 8: first the work ends. In doubt of a write, the object is read then. */
export const leaves: Act = (state, t) => {
  const { step, known } = taskOf(state, t);
  if (step !== 'doubts' || known.left <= 0) return IMPOSSIBLE;
  return [withTask(state, t, { step: 'releases', works: false })];
};

/** Rule 8: without a doubt it sends the tombstone at once. */
export const releases: Act = (state, t, bounds) => {
  const { step, known } = taskOf(state, t);
  if (step !== 'holds' || known.left <= 0) return IMPOSSIBLE;
  return sent(withTask(state, t, { works: false }), t, bounds, 'gives back', 'tombstone');
};

/** The object shows a lease of its own, and it sends the tombstone, perhaps past the deadline. */
export function givesBack(
  state: State,
  t: number,
  bounds: Bounds,
  shown: Known | undefined,
): readonly State[] {
  const task = taskOf(state, t);
  if (task.step !== 'releases' || shown === undefined) return IMPOSSIBLE;
  return sent(withTask(state, t, readBack(task, shown)), t, bounds, 'gives back', 'tombstone');
}

/** It hears that its tombstone was applied. */
export const hasReleased: Act = (state, t, bounds) => {
  const { step, newest } = taskOf(state, t);
  return step === 'gives back' && newest.at === 'applied' ? [ended(state, t, bounds)] : IMPOSSIBLE;
};

/** It hears that its tombstone was refused. */
export const releasesAgain: Act = (state, t) => {
  const { step, newest } = taskOf(state, t);
  if (step !== 'gives back' || newest.at !== 'refused') return IMPOSSIBLE;
  return [withTask(state, t, { step: 'releases', newest: NO_WRITE })];
};

/** It crashes, gives up a claim, or its time is up: the work ends with the tenure (rule 7). */
export const ends: Act = (state, t, bounds) => {
  const { step, known } = taskOf(state, t);
  const may =
    step === 'reads its claim back' ||
    step === 'holds' ||
    step === 'releases' ||
    (step === 'doubts' && !inTime(known, bounds));
  return may ? [ended(state, t, bounds)] : IMPOSSIBLE;
};

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
