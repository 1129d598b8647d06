import type { Tenure } from '../../../node/wire/cluster-snapshot.js';
import type { Lane } from './tenure-log.js';

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
