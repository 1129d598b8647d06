import type { ClusterHistory, Tenure } from '../../../node/wire/cluster-snapshot.js';
import type { NodeReport } from '../../../node/wire/status-report.js';
import type { SeenNode } from './cluster-model.js';

/** The known tenures of a node id, the oldest first. Another object when one changes. */
export type Lane = readonly Tenure[];

/** Ids in one request: about a megabyte is answered. */
const MAX_IDS = 1_000;
/** Tenures of an id that are kept. */
const KEPT = 100;
/** After a longer time without a report, in milliseconds, more may have happened than histories say. */
const GAP_MS = 10_000;

/**
 * Who held which node id. A lease object says it of the last eight tenures before its own; it is read again
 * whenever the lease changes.
 */
export class TenureLog {
  lanes: ReadonlyMap<number, Lane> = new Map();
  /** From when on the tenures of an id are all known, in store time; null where nothing is known. */
  readonly knownSince = new Map<number, number | null>();
  /** When the first known tenure began, in store time. */
  first = Number.POSITIVE_INFINITY;
  #seenAt = 0;
  /** The ids as they were shown when their histories were read. */
  #read = new WeakSet<NodeReport>();
  #isReading = false;

  /** Takes in a report that comes `at` this moment, in store time. Where `ask` fails, the next one asks again. */
  async see(
    nodes: readonly SeenNode[],
    at: number,
    ask: (ids: readonly number[]) => Promise<ClusterHistory>,
  ): Promise<void> {
    if (at - this.#seenAt > GAP_MS) {
      this.lanes = new Map();
      this.#read = new WeakSet();
    }
    this.#seenAt = at;
    const unread = nodes.filter(({ shown }) => !this.#read.has(shown)).slice(0, MAX_IDS);
    if (this.#isReading || unread.length === 0) return;
    this.#isReading = true;
    const answer = await ask(unread.map(({ node }) => node.id)).catch(() => undefined);
    this.#isReading = false;
    // A refusal has none.
    if (!answer?.nodes) return;
    for (const { shown } of unread) this.#read.add(shown);
    const lanes = new Map(this.lanes);
    for (const { id, tenures, knownSince } of answer.nodes) {
      const lane = merged(lanes.get(id), tenures, at);
      lanes.set(id, lane);
      this.first = Math.min(this.first, lane[0]?.acquiredAt ?? this.first);
      this.knownSince.set(id, knownSince);
    }
    this.lanes = lanes;
  }
}

/** @param at when begins and ends what does not say when */
function merged(lane: Lane = [], read: readonly Tenure[], at: number) {
  const known = new Map<number, Tenure>(
    lane.map((each) => [each.version, { ...each, endedAt: each.endedAt ?? at }]),
  );
  for (const each of read) {
    const acquiredAt = each.acquiredAt ?? known.get(each.version)?.acquiredAt ?? at;
    known.set(each.version, { ...each, acquiredAt });
  }
  return [...known.values()].sort((a, b) => a.version - b.version).slice(-KEPT);
}

/** A part of a row of the timeline, in store time. */
export interface Part {
  /** 0 where it has no known beginning. */
  readonly from: number;
  readonly to: number;
  /** `held`, how a tenure ended, `free`, `no known tenure`, or what is summed up. */
  readonly kind: string;
  /** Of the height of the row, from 0 to 1. */
  readonly share: number;
  readonly text: () => string;
  readonly tenure?: Tenure | undefined;
  /** Whether its task took the id from one that had not released it. */
  readonly isTakeOver?: boolean;
}

const HOUR_MS = 3_600_000;
/** How much time the timeline may show, in milliseconds. */
export const SPANS = [1 / 12, 1 / 4, 1, 6, 24, 168].map((hours) => hours * HOUR_MS);

/** The shortest span that has the time since that moment. */
export function spanSince(first: number, now: number): number {
  return SPANS.find((span) => first >= now - span) ?? (SPANS.at(-1) as number);
}

/** The end of a span around a moment of the past; none where it reaches the present, with which it moves then. */
export function spanEnd(at: number, spanMs: number, now: number): number {
  const end = at + spanMs / 2;
  return end < now ? end : Number.POSITIVE_INFINITY;
}

/** A moment of an axis: its time, and its date where that is not the date of the moment before. */
export function axisText(at: number, before = 0): readonly [time: string, date: string] {
  const [date = '', time = ''] = timeText(at).split(' ');
  return [time, timeText(before).startsWith(date) ? '' : date];
}

/** Parts of a window with one sum each: minutes of an hour. */
const PARTS = 60;

/** A moment with its date. */
export const timeText = (at: number) => new Date(at).toLocaleString('sv');

/**
 * The parts of all time until now: tenures, and the times between them.
 * @param knownSince as of `TenureLog`
 */
export function laneParts(lane: Lane, now: number, knownSince: number | null = null): Part[] {
  const parts: Part[] = [];
  const add = (kind: string, to: number, tenure?: Tenure, isTakeOver = false) => {
    const from = parts.at(-1)?.to ?? 0;
    const text = () =>
      [
        tenure && `${tenure.taskId}, version ${tenure.version}`,
        isTakeOver && 'taken over',
        from > 0 && `from ${timeText(from)}`,
        to < now && `until ${timeText(to)}`,
        kind,
      ]
        .filter(Boolean)
        .join(', ');
    if (to > from) parts.push({ from, to, kind, share: kind === 'free' ? 0 : 1, text, tenure, isTakeOver });
  };
  const before = (end: number) => (knownSince !== null && knownSince < end ? 'free' : 'no known tenure');
  for (const [index, tenure] of lane.entries()) {
    const { acquiredAt, endedAt, end } = tenure;
    add(index > 0 ? 'free' : before(acquiredAt ?? now), acquiredAt ?? now);
    const kind = endedAt === null ? 'held' : (end ?? 'end not seen');
    add(kind, endedAt ?? now, tenure, lane[index - 1]?.end === 'expired');
  }
  add(lane.length > 0 ? 'free' : before(now), now);
  return parts;
}

/** Equal parts of a window: how much of the lanes' time was held, or how many take-overs there were. */
export function sumParts(
  lanes: readonly Lane[],
  kind: 'held' | 'taken over',
  [from, to]: readonly [from: number, to: number],
  now: number,
): Part[] {
  const ms = (to - from) / PARTS;
  const sums = new Array<number>(PARTS).fill(0);
  for (const { tenure, isTakeOver, ...part } of lanes.flatMap((lane) => laneParts(lane, now))) {
    const [begin, end] = [(part.from - from) / ms, (part.to - from) / ms];
    for (let at = Math.max(0, Math.floor(begin)); tenure && at < Math.min(PARTS, end); at += 1) {
      const held = Math.min(end, at + 1) - Math.max(begin, at);
      sums[at] = (sums[at] ?? 0) + (kind === 'held' ? held : Number(isTakeOver && begin >= at));
    }
  }
  const max = kind === 'held' ? lanes.length : Math.max(1, ...sums);
  return sums.map((sum, index) => {
    const texts = {
      held: `${Math.round((sum / max) * 100)} % known to be held`,
      'taken over': `${((sum * 60_000) / ms).toFixed(1)} a minute`,
    };
    const begin = from + index * ms;
    return { from: begin, to: begin + ms, kind, share: sum / max, text: () => texts[kind] };
  });
}
