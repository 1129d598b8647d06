import { type Explanation, explain } from './explain.js';
import { type Stops, type Trace, type TraceEvent, tracedObject } from './lease-trace.js';
import { type RecordedEvent, StoreOrder } from './store-order.js';
import type { TaskEvent } from './task-recorder.js';
import { ROUNDING_MS } from './traced-settings.js';

/** What a store has kept of a run, by the bodies, the oldest first. */
export interface KeptStates {
  /** Of the cluster's settings. */
  readonly settings: readonly string[];
  readonly leases: ReadonlyMap<string, readonly string[]>;
}

/** What the model says of a run of real processes. */
export interface RunExplanation extends Explanation {
  readonly tasks: number;
  /** Forced releases, by operators who are not traced. */
  readonly forced: number;
  /** Applied writes of which their task has not heard that. */
  readonly unheard: number;
}

/**
 * Looks for a path of the model on which all that happens which tasks have noted, and which their store has kept.
 *
 * @param tasks the events of each task, in its order
 */
export function explainRun(
  tasks: ReadonlyMap<string, readonly TaskEvent[]>,
  { settings, leases }: KeptStates,
  stops: Stops = new Map(),
): RunExplanation {
  let requests = 0;
  const newRequest = () => {
    requests += 1;
    return requests;
  };
  const events = [...tasks].flatMap(([task, own]) => renumbered(task, own, newRequest));
  const end = events.reduce((last, { at }) => Math.max(last, at), 0);
  const orders = [...leases].map(([key, bodies]) => {
    const recorded = events.filter((event) => event.key === key);
    return [key, new StoreOrder(key, bodies, recorded, newRequest, end)] as const;
  });
  const trace: Trace = {
    stops,
    vacant: new Map(orders.map(([key, { vacant }]) => [key, vacant])),
    events: [
      ...settings.map(settingsEvent),
      ...orders
        .flatMap((order) => order[1].events)
        .concat([...tasks.keys()].flatMap((task) => traced(events.filter((event) => event.task === task))))
        .sort((one, other) => one.at - other.at),
    ],
  };
  const problems = orders.flatMap(([, { problem }]) => problem ?? []).sort((one, other) => one.at - other.at);
  const explanation = explain(trace);
  const sum = (field: 'forced' | 'unheard') => orders.reduce((total, [, order]) => total + order[field], 0);
  return {
    ...explanation,
    ...{ tasks: tasks.size, forced: sum('forced'), unheard: sum('unheard') },
    failure: problems[0] ?? explanation.failure,
  };
}

function renumbered(task: string, events: readonly TaskEvent[], newRequest: () => number): RecordedEvent[] {
  const numbers = new Map<number, number>();
  return events.map((event) => {
    if (!('request' in event)) return { ...event, task };
    const request = numbers.get(event.request) ?? newRequest();
    numbers.set(event.request, request);
    return { ...event, task, request };
  });
}

function settingsEvent(body: string): TraceEvent {
  const { durationMs, graceMs } = JSON.parse(body) as { durationMs: number; graceMs: number };
  return { kind: 'settings', at: 0, key: '', durationMs, graceMs };
}

/** The events of one task, for the model. */
function traced(events: readonly RecordedEvent[]): TraceEvent[] {
  return events.map((event, index) => {
    const of = { ...event, clock: event.at };
    if (of.kind === 'hears') return { ...of, time: 0 };
    if (of.kind !== 'sends') return of;
    const object = tracedObject(of.body);
    return { ...of, object, etag: of.etag, clock: readAt(events, index, object.durationMs) };
  });
}

/**
 * When a task has read its clock for a write, which it has noted somewhat later: a later deadline says so, if it counts from a
 * moment before the request was sent; else the present one, where what was left of it is the duration (rule 14). A deadline
 * that counts from a later moment has no path.
 */
function readAt(events: readonly RecordedEvent[], index: number, durationMs: number): number {
  const { at = 0, until = Number.NaN } = events[index] ?? {};
  const after = events[index - 1]?.at ?? 0;
  const later = events
    .slice(index + 1)
    .flatMap((event) => (event.until === until ? [] : (event.until ?? [])));
  const moments = [...later.map((next) => next - durationMs), until - durationMs + ROUNDING_MS / 2];
  const moment = moments.find((each) => each > after - ROUNDING_MS && each < at + ROUNDING_MS);
  return Math.min(Math.max(moment ?? at, after), at);
}
