import {
  type Act,
  type Body,
  type Bounds,
  IMPOSSIBLE,
  isFree,
  type Known,
  type Match,
  NEW_TASK,
  NO_WRITE,
  NOW,
  type State,
  type Step,
  type Task,
  taskOf,
  type Write,
  withTask,
} from './lease-model.js';

// The steps of a task in `lease.pml`, the proctype of that name.

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

/** It was stopped after it had decided on a renewal, which it sends past the stop point. */
export const renewsLate: Act = (state, t, bounds) => {
  const { step, known } = taskOf(state, t);
  if (step !== 'holds' || inTime(known, bounds)) return IMPOSSIBLE;
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
