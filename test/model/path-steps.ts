import {
  type Act,
  appliesEarlier,
  appliesLate,
  appliesNewest,
  type Bounds,
  evicts,
  type Known,
  NOW,
  type State,
  type Step,
  type Task,
  taskOf,
  type Write,
} from './lease-model.js';
import { ends, givesUp, leaves } from './lease-task.js';
import type { TracedObject } from './lease-trace.js';

/** How many acts of a task may come one after the other which no event shows: it gives up, leaves and ends. */
const MOST_HIDDEN = 3;
const HIDDEN: readonly Act[] = [givesUp, leaves, ends];

/** Where a task may read the object: without a doubt a holder does not. */
const MAY_ASK: readonly Step[] = ['contends', 'plans', 'reads its claim back', 'doubts', 'releases'];
export const mayAsk: Act = (state, t) => (MAY_ASK.includes(taskOf(state, t).step) ? [state] : []);
/** It is in no tenure. */
export const isOut: Act = (state, t) => (taskOf(state, t).step === 'contends' ? [state] : []);

/** The states after an act of a task. */
export function each(states: readonly State[], t: number, bounds: Bounds, act: Act): readonly State[] {
  return states.flatMap((state) => act(state, t, bounds));
}

/** The states after an act of a task, and before it as few as possible that no event shows. */
export function reached(states: readonly State[], t: number, bounds: Bounds, act: Act): readonly State[] {
  let from = states;
  for (let hidden = 0; ; hidden += 1) {
    const next = each(from, t, bounds, act);
    if (next.length > 0 || hidden === MOST_HIDDEN) return next;
    from = HIDDEN.flatMap((step) => each(from, t, bounds, step));
  }
}

/** The write of that name, if the task still has it. */
export function writeOf({ newest, earlier, known }: Task, name: number): Known | undefined {
  return [newest, ...earlier, known].find((write) => write.name === name);
}

/** Rule 9, by the age that the operator has read. */
export function evicted(
  state: State,
  age: number,
  rise: number,
  { durationMs }: TracedObject,
  bounds: Bounds,
): readonly State[] {
  if (rise !== 1) return [];
  const read = { ...state, object: { ...state.object, age } };
  return evicts(read, bounds).filter(({ object: { lasts } }) => lasts === durationMs);
}

/** The store applies the write of this request, by whichever task, under way or late. */
export function applies(
  state: State,
  request: number,
  rise: number,
  { kind }: TracedObject,
): readonly State[] {
  const isIt = ({ name, version, body }: Write) =>
    name === request && version - NOW === rise && (body === 'held') === (kind === 'held');
  const t = state.tasks.findIndex(({ newest, earlier }) => isIt(newest) || earlier.some(isIt));
  if (t < 0) return [];
  const { newest, earlier } = taskOf(state, t);
  if (!isIt(newest)) return appliesEarlier(state, t, earlier.findIndex(isIt));
  return newest.at === 'late' ? appliesLate(state, t) : appliesNewest(state, t);
}

/** The request by which the task has sent its newest write. */
export function named({ object, tasks }: State, t: number, name: number): State {
  const task = tasks[t] as Task;
  return { object, tasks: tasks.with(t, { ...task, newest: { ...task.newest, name } }) };
}

export function distinct(states: readonly State[]): readonly State[] {
  return [...new Map(states.map((state) => [JSON.stringify(state), state])).values()];
}

/** A state for people, as far as it is about task t. */
export function described({ object, tasks }: State, t: number | undefined): string {
  const task = t === undefined ? undefined : tasks[t];
  const shown = `the object is ${object.body}`;
  if (task === undefined) return `${shown} and the task unknown`;
  const { step, known, newest, earlier } = task;
  const own = known.lasts > 0 ? ` with ${known.left.toFixed(1)} ms left of ${known.lasts}` : '';
  const late = earlier.length === 0 ? '' : `, ${earlier.length} earlier`;
  return `${shown}, ${known.stands ? 'as it knows it, ' : ''}and the task ${step}${own}, its newest write ${newest.at}${late}`;
}
