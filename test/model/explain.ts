import { LeasePath, type ReadsBehindWrites } from './lease-path.js';
import { answerOf, type Trace, type Traced, type TracedObject, type TraceEvent } from './lease-trace.js';
import { TracedSettings } from './traced-settings.js';

/** What the model says of a trace. */
export interface Explanation {
  /** Events that have a path. */
  readonly events: number;
  /** Objects whose path is complete. */
  readonly objects: number;
  /** Objects that were left at an event of which the model has nothing, by what it was. */
  readonly leftOut: Readonly<Record<string, number>>;
  /** Renewals past the stop point, by tasks that were stopped just before, or that had just read. */
  readonly late: number;
  /** The first event that has no path. */
  readonly failure: { readonly at: number; readonly text: string } | undefined;
}

/**
 * Looks for a path of the model on which all events of a trace happen. Every state that a path may have reached is kept;
 * the first event that is possible in none of them is the failure.
 *
 * A read is one step, in which the store answers. What its task makes of the answer comes when it hears it, by its clock
 * of that moment.
 */
export function explain({ vacant, events, stops }: Trace): Explanation {
  const reads = readsBehindWrites(events);
  const settings = new TracedSettings();
  const paths = new Map(
    [...vacant].map(([key, etag]) => [key, new LeasePath(key, etag, settings, reads, stops)]),
  );
  const created = new Map<number, TracedObject>();
  const leftOut: Record<string, number> = {};
  const leave = (what: string) => {
    leftOut[what] = (leftOut[what] ?? 0) + 1;
  };
  let explained = 0;
  const late = () => [...paths.values()].reduce((sum, path) => sum + path.late, 0);
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
      const made = new LeasePath(event.key, event.etag, settings, reads, stops);
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
      return {
        events: explained,
        objects: 0,
        leftOut,
        late: late(),
        failure: { at: event.at, text: problem },
      };
    explained += 1;
  }
  const objects = [...paths.values()].filter(({ left }) => left === undefined).length;
  return { events: explained, objects, leftOut, late: late(), failure: undefined };
}

function readsBehindWrites(events: readonly TraceEvent[]): ReadsBehindWrites {
  const shown = new Map<number, Traced<'shown'>>();
  const heard = new Map<string, Traced<'shown'>>();
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
