import type { Lane } from './tenure-log.js';
import type { WireTenure } from './wire.js';

/** A part of a row of the timeline, in store time. */
export interface Part {
  readonly from: number;
  readonly to: number;
  /** `held`, how a tenure ended, `free`, `no known tenure`, or what is summed up. */
  readonly kind: string;
  /** Of the height of the row, from 0 to 1. */
  readonly share: number;
  readonly text: () => string;
  readonly tenure?: WireTenure | undefined;
  /** Whether its task took the id from one that had not released it. */
  readonly isTakeOver?: boolean;
}

/** Parts of a window with one sum each: minutes of an hour. */
const PARTS = 60;

/** A moment with its date. */
export const timeText = (at: number) => new Date(at).toLocaleString('sv');

/** The parts of all time until now: tenures, and the times between them. */
export function laneParts(lane: Lane, now: number): Part[] {
  const parts: Part[] = [];
  const add = (kind: string, to: number, tenure?: WireTenure, isTakeOver = false) => {
    const from = parts.at(-1)?.to ?? Number.NEGATIVE_INFINITY;
    const text = () =>
      [
        tenure && `${tenure.taskId}, version ${tenure.version}`,
        isTakeOver && 'taken over',
        Number.isFinite(from) && `from ${timeText(from)}`,
        to < now && `until ${timeText(to)}`,
        kind,
      ]
        .filter(Boolean)
        .join(', ');
    if (to > from) parts.push({ from, to, kind, share: kind === 'free' ? 0 : 1, text, tenure, isTakeOver });
  };
  for (const [index, tenure] of lane.entries()) {
    const { acquiredAt, endedAt, end } = tenure;
    add(index > 0 ? 'free' : 'no known tenure', acquiredAt ?? now);
    const kind = endedAt === null ? 'held' : (end ?? 'end not seen');
    add(kind, endedAt ?? now, tenure, lane[index - 1]?.end === 'expired');
  }
  add(lane.length > 0 ? 'free' : 'no known tenure', now);
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
  for (const part of lanes.flatMap((lane) => laneParts(lane, now)).filter(({ tenure }) => tenure)) {
    const [begin = 0, end = 0] = [part.from, part.to].map((at) => (at - from) / ms);
    for (let at = Math.max(0, Math.floor(begin)); at < Math.min(PARTS, end); at += 1) {
      const held = Math.min(end, at + 1) - Math.max(begin, at);
      const takeOvers = part.isTakeOver && begin >= at ? 60_000 / ms : 0;
      sums[at] = (sums[at] ?? 0) + (kind === 'held' ? held / lanes.length : takeOvers);
    }
  }
  const max = kind === 'held' ? 1 : Math.max(1, ...sums);
  return sums.map((sum, index) => {
    const text = () =>
      kind === 'held' ? `${Math.round(sum * 100)} % known to be held` : `${sum.toFixed(1)} a minute`;
    return { from: from + index * ms, to: from + (index + 1) * ms, kind, share: sum / max, text };
  });
}
