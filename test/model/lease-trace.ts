/** What a lease object has, as far as the model knows it. */
export interface TracedObject {
  readonly kind: 'vacant' | 'held' | 'released' | 'retired';
  readonly version: number;
  readonly durationMs: number;
  /** Of a held one: the attempt to acquire, and the number of the write. */
  readonly nonce?: string | undefined;
  readonly renewal?: number | undefined;
}

/** What the model knows of an object with this body. */
export function tracedObject(body: string): TracedObject {
  if (body === '') return { kind: 'vacant', version: 0, durationMs: 0 };
  const fields = JSON.parse(body) as Partial<TracedObject> & {
    readonly taskId?: string;
    readonly retired?: boolean;
  };
  const { version = 0, durationMs = 0, nonce, renewal, taskId, retired } = fields;
  const kind = taskId !== undefined ? 'held' : retired ? 'retired' : 'released';
  return { kind, version, durationMs, nonce, renewal };
}

interface OfTask {
  readonly key: string;
  readonly task: string;
  /** The task's monotonic clock, in milliseconds. */
  readonly clock: number;
  /** Until when it believes in its lease of this object, by the same clock; undefined if it does not. */
  readonly until?: number | undefined;
}

/** One event in the life of a lease object. A request has a number, which is its name in the other events. */
export type TraceEvent = { /** True time, in milliseconds. */ readonly at: number } & (
  | (OfTask & { readonly kind: 'asks'; readonly request: number })
  | (OfTask & {
      readonly kind: 'sends';
      readonly request: number;
      readonly object: TracedObject;
      /** That of the condition; undefined for a creation. */
      readonly etag: string | undefined;
    })
  /** The store has answered a read, the first or the second time: no etag where there is no object. */
  | {
      readonly kind: 'shown';
      readonly key: string;
      readonly request: number;
      readonly time: number;
      readonly etag?: string | undefined;
      /** For how long the store says at least that the object has been so, in milliseconds. */
      readonly age: number;
    }
  /** The store has applied a write. */
  | { readonly kind: 'applied'; readonly key: string; readonly request: number; readonly etag: string }
  /** The task, which still waited, has its answer. */
  | (OfTask & {
      readonly kind: 'hears';
      readonly request: number;
      readonly answer: 'read' | 'written' | 'conflict' | 'not applied' | 'unknown';
      /** Which of the answers to a read it is. */
      readonly time: number;
    })
  | (OfTask & { readonly kind: 'holds' })
  | (OfTask & { readonly kind: 'loses'; readonly toAnother: boolean })
  /** What the settings say from now on; the key is that of no lease. */
  | { readonly kind: 'settings'; readonly key: ''; readonly durationMs: number; readonly graceMs: number }
);

/** The events of one kind. */
export type Traced<Kind extends TraceEvent['kind']> = Extract<TraceEvent, { kind: Kind }>;
/** The events of one object. */
export type ObjectEvent = Exclude<TraceEvent, { kind: 'settings' }>;

/** An answer to a read: a request may be answered twice. */
export const answerOf = ({ request, time }: { readonly request: number; readonly time: number }) =>
  2 * request + time;

/** The moments at which each task was stopped for some time, in milliseconds of true time. */
export type Stops = ReadonlyMap<string, readonly number[]>;

/** What there is at the beginning. */
export interface Trace {
  /** The etag of each object that no task has held yet. */
  readonly vacant: ReadonlyMap<string, string>;
  readonly events: readonly TraceEvent[];
  /** When each task was stopped: between any two steps, so between two readings of the clock as well. @default never */
  readonly stops?: Stops;
}
