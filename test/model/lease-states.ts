import {
  type Act,
  appliesEarlier,
  appliesLate,
  appliesNewest,
  type Bounds,
  dropsEarlier,
  evicts,
  NEVER_HELD,
  NEW_TASK,
  refusesNewest,
  type State,
  type Step,
  type Task,
  taskOf,
  ticks,
  type Write,
} from './lease-model.js';
import {
  begins,
  claims,
  ends,
  findsClaim,
  findsLost,
  findsOwn,
  givesBack,
  givesUp,
  hasReleased,
  isDenied,
  isRefused,
  isRenewed,
  leaves,
  losesRace,
  releases,
  releasesAgain,
  renews,
  renewsAtOnce,
  sees,
  shownBy,
} from './lease-task.js';

/** The bounds of `lease.pml`, in ticks. */
export function boundsInTicks(
  durations: readonly number[],
  late: 'one' | 'one of each task' = 'one',
): Bounds {
  const grace = { least: 1, most: 1 };
  return { durations, tuned: durations.length > 1, grace: () => grace, margin: () => 1, lags: [0, 1], late };
}

const STEPS_OF_TASK: readonly Act[] = [
  sees,
  claims,
  begins,
  losesRace,
  givesUp,
  renews,
  isRenewed,
  isDenied,
  isRefused,
  leaves,
  releases,
  hasReleased,
  releasesAgain,
  ends,
  appliesNewest,
  refusesNewest,
  appliesLate,
  // What a task does after it has read the object: both are one step there.
  (state, t, bounds) => findsClaim(state, t, bounds, shownBy(state, t)),
  (state, t) => findsOwn(state, t, shownBy(state, t)),
  (state, t, bounds) => renewsAtOnce(state, t, bounds, shownBy(state, t)),
  (state, t, bounds) => findsLost(state, t, bounds, shownBy(state, t)),
  (state, t, bounds) => givesBack(state, t, bounds, shownBy(state, t)),
  (state, t) => taskOf(state, t).earlier.flatMap((_, index) => appliesEarlier(state, t, index)),
  (state, t) => taskOf(state, t).earlier.flatMap((_, index) => dropsEarlier(state, t, index)),
];

function nextOf(state: State, bounds: Bounds): State[] {
  const next = [ticks(state, bounds), ...evicts(state, bounds)];
  for (const act of STEPS_OF_TASK) for (const t of state.tasks.keys()) next.push(...act(state, t, bounds));
  return next;
}

/**
 * How many states SPIN stores: all that two tasks can reach, and the one before they run.
 *
 * @param check called with each state
 */
export function countStates(bounds: Bounds, check: (state: State) => void = () => undefined): number {
  const first: State = { object: NEVER_HELD, tasks: [NEW_TASK, NEW_TASK] };
  const seen = new Set([keyOf(first)]);
  for (let layer = [first]; layer.length > 0; ) {
    const following: State[] = [];
    for (const state of layer) {
      check(state);
      for (const next of nextOf(state, bounds)) {
        const { size } = seen;
        if (seen.add(keyOf(next)).size > size) following.push(next);
      }
    }
    layer = following;
  }
  return 1 + seen.size;
}

const STEPS: readonly Step[] = [
  'contends',
  'plans',
  'claims',
  'reads its claim back',
  'holds',
  'renews',
  'doubts',
  'releases',
  'gives back',
];
const PLACES = ['nowhere', 'planned', 'under way', 'late', 'applied', 'refused', 'unheard'];
const BODIES = ['vacant', 'held', 'tombstone'];
const MATCHES = ['outdated', 'current', 'of vacant'];

/** A short text that no other state of small numbers has. */
function keyOf({ object, tasks }: State): string {
  const { body, holder, lasts, trusted, age } = object;
  let key = packed(BODIES.indexOf(body), holder, lasts, trusted ? 1 : 0, age);
  for (const task of tasks) key += keyOfTask(task);
  return key;
}

function keyOfTask({ step, version, works, known, newest, earlier }: Task): string {
  const { lasts, left, stands } = known;
  const own = packed(STEPS.indexOf(step), version, works ? 1 : 0, earlier.length, 0);
  return own + packed(lasts, left, stands ? 1 : 0, 0, 0) + [newest, ...earlier].map(keyOfWrite).join('');
}

function keyOfWrite({ at, body, match, version, claims: begin, lasts, left, stands }: Write): string {
  return (
    packed(PLACES.indexOf(at), BODIES.indexOf(body), MATCHES.indexOf(match), version, begin ? 1 : 0) +
    packed(lasts, left, stands ? 1 : 0, 0, 0)
  );
}

/** Five numbers below 16, 8, 8, 8 and 8 in one character. */
function packed(a: number, b: number, c: number, d: number, e: number): string {
  return String.fromCharCode((((a * 8 + b) * 8 + c) * 8 + d) * 8 + e);
}
