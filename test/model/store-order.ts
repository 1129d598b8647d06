import { type TracedObject, type TraceEvent, tracedObject } from './lease-trace.js';
import type { TaskEvent } from './task-recorder.js';

/** An event of one of several tasks. A request has another number than those of the other tasks. */
export type RecordedEvent = TaskEvent & { readonly task: string };
type Sent = Extract<RecordedEvent, { kind: 'sends' }>;
type Heard = Extract<RecordedEvent, { kind: 'hears' }>;

/** A state that the object has had. */
interface State {
  readonly body: string;
  readonly object: TracedObject;
  /** The request that wrote it; undefined for the first state, and for that of an operator. */
  readonly write: Sent | undefined;
  /** The answers that show it. */
  readonly reads: Heard[];
}

/** Shorter than the time between two readings of the clock, in milliseconds. */
const MOMENT_MS = 1e-5;
/** Operators are not traced. */
const OPERATOR = 'an operator';

/**
 * Gives each write and each answer of one object a moment at which it may have happened: in the order in which the store has
 * kept the states, after the request was sent, and before the answer was heard. Each has the earliest one. So if that is too
 * late for one of them, there is no such order: then the store is not linearizable.
 */
export class StoreOrder {
  /** What the store did, and the operators of whom only the writes are known. */
  readonly events: TraceEvent[] = [];
  /** How many times operators have taken the id away. */
  forced = 0;
  /** How many writes were applied of which their task has not heard that. */
  unheard = 0;
  /** The first answer for which there is no moment. */
  problem: { readonly at: number; readonly text: string } | undefined;
  readonly #sent = new Map<number, Sent>();
  readonly #askedAt = new Map<number, number>();
  /** What was heard of writes. */
  readonly #heard = new Map<number, Heard>();
  readonly #etags = new Map<string, string>();
  readonly #states: readonly State[];
  /** The latest moment so far. */
  #now = Number.NEGATIVE_INFINITY;
  /** The request that is the reason for it. */
  #latest: RecordedEvent | undefined;
  /** When the request that wrote the present state was begun, or later. */
  #begunAt = Number.NEGATIVE_INFINITY;

  /**
   * @param bodies the states of the object, the first one first
   * @param recorded what tasks have noted of the object
   * @param newRequest numbers the requests of operators
   * @param end when the last event of the trace has happened
   */
  constructor(
    private readonly key: string,
    bodies: readonly string[],
    recorded: readonly RecordedEvent[],
    private readonly newRequest: () => number,
    private readonly end: number,
  ) {
    for (const event of recorded) {
      if (event.kind === 'asks') this.#askedAt.set(event.request, event.at);
      if (event.kind === 'sends') this.#sent.set(event.request, event);
      if (event.kind === 'hears' && event.answer !== 'read') this.#heard.set(event.request, event);
    }
    this.#states = bodies.map((body, index) => ({
      ...{ body, object: tracedObject(body), reads: [] },
      write: index === 0 ? undefined : this.#writeOf(body),
    }));
    for (const event of recorded) if (event.kind === 'hears') this.#isShownBy(event);
    for (const index of this.#states.keys()) {
      if (index > 0) this.#applies(index);
      this.#isShown(index);
    }
  }

  /** The etag of the first state. */
  get vacant(): string {
    return this.#etagOf(0);
  }

  /** A write is sent again where its outcome is unknown: then the first one may be what was applied. */
  #writeOf(body: string): Sent | undefined {
    const copies = [...this.#sent.values()].filter((sent) => sent.body === body);
    const answer = ({ request }: Sent) => this.#heard.get(request)?.answer ?? 'unknown';
    return (
      copies.find((copy) => answer(copy) === 'written') ??
      copies.find((copy) => answer(copy) === 'unknown') ??
      copies[0]
    );
  }

  #isShownBy(heard: Heard): void {
    const body = heard.answer === 'read' ? heard.body : this.#sent.get(heard.request)?.body;
    if (body !== undefined && heard.etag !== undefined) this.#etags.set(body, heard.etag);
    if (heard.answer !== 'read') return;
    const state = this.#states.find((each) => each.body === body);
    if (state === undefined) this.#fail(heard.at, `${heard.task} reads what the store has not kept: ${body}`);
    else state.reads.push(heard);
  }

  #applies(index: number): void {
    const { write, object, body } = this.#states[index] as State;
    const earlier = this.#states[index - 1] as State;
    const since = this.#begunAt;
    // An operator has begun after the replaced state was there.
    this.#begunAt = write?.at ?? this.#now;
    this.#moveTo(this.#begunAt, write);
    const heard = write && this.#heard.get(write.request);
    // A copy with an unknown outcome would be the one that was applied.
    if (heard?.answer === 'not applied' || heard?.answer === 'conflict')
      this.#fail(
        heard.at,
        `${heard.task} hears '${heard.answer}' of its write of version ${object.version}, which is kept`,
      );
    if (heard?.answer !== 'written') this.unheard += write === undefined ? 0 : 1;
    else if (this.#now > heard.at)
      this.#fail(
        heard.at,
        `${heard.task} hears of its write of version ${object.version} too early: ${this.#why}`,
      );
    const request = write?.request ?? this.newRequest();
    if (write === undefined) {
      if (!isEviction(earlier.object, object)) this.#fail(this.#now, `no task has written ${body}`);
      this.#isEvicted(index, request, since);
    }
    this.events.push({ ...this.#event, kind: 'applied', request, etag: this.#etagOf(index) });
  }

  /** Rule 9. The age that the operator has read is not known: it is one that allows this, if there is one. */
  #isEvicted(index: number, request: number, since: number): void {
    this.forced += 1;
    const { object } = this.#states[index] as State;
    const shownAt = this.#states.slice(index).flatMap(({ reads }) => reads.map(({ at }) => at));
    const age = object.durationMs === 0 ? Math.min(this.end, ...shownAt) - since : 0;
    const etag = this.#etagOf(index - 1);
    const read = { request: this.newRequest(), time: 0 };
    const by = { ...this.#event, task: OPERATOR, clock: this.#now };
    this.events.push(
      { ...by, ...read, kind: 'asks' },
      { ...this.#event, ...read, kind: 'shown', etag, age },
      { ...by, ...read, kind: 'hears', answer: 'read' },
      { ...by, kind: 'sends', request, object, etag },
    );
  }

  #isShown(index: number): void {
    const { object, reads } = this.#states[index] as State;
    const etag = this.#etagOf(index);
    const askedAt = ({ request }: Heard) => this.#askedAt.get(request) ?? 0;
    for (const read of reads.sort((one, other) => askedAt(one) - askedAt(other))) {
      const { request, at, age = 0, task } = read;
      this.#moveTo(askedAt(read), read);
      if (this.#now > at) this.#fail(at, `${task} reads version ${object.version} too early: ${this.#why}`);
      // What the store says, but no more than the time since the write was begun.
      const shown = Math.min(age, at - this.#begunAt);
      this.events.push({ ...this.#event, kind: 'shown', request, time: 0, etag, age: shown });
    }
  }

  #moveTo(moment: number, request: RecordedEvent | undefined): void {
    if (moment > this.#now) this.#latest = request;
    this.#now = Math.max(this.#now, moment) + MOMENT_MS;
  }

  get #why(): string {
    const { kind, task } = this.#latest ?? {};
    return `${task} ${kind === 'sends' ? 'writes' : 'reads'} an earlier state, or this one, later`;
  }

  get #event() {
    return { at: this.#now, key: this.key };
  }

  #etagOf(index: number): string {
    const { body = '' } = this.#states[index] ?? {};
    return this.#etags.get(body) ?? this.#states[index + 1]?.write?.etag ?? `state ${index}`;
  }

  #fail(at: number, text: string): void {
    if (this.problem === undefined || at < this.problem.at)
      this.problem = { at, text: `${this.key}: ${text}` };
  }
}

const isEviction = (before: TracedObject, after: TracedObject) =>
  before.kind === 'held' && after.kind === 'released' && after.version === before.version + 1;
