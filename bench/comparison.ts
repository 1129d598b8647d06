import { median } from './report.js';

/** What was measured of the baseline and of nodelease, round by round. */
export interface Turns<T> {
  readonly plain: T[];
  readonly ours: T[];
}

/** Of one quantity, in the unit of its table. */
export type Samples = Turns<number>;

/** One line of a comparison, in the unit of its table. */
export interface Compared {
  readonly what: string;
  readonly plain: number;
  readonly ours: number;
}

/** The least value that a share of all values, 0 … 1, does not exceed. */
export function percentile(values: readonly number[], share: number): number {
  const sorted = [...values].sort((a, b) => a - b);
  return sorted[Math.max(0, Math.ceil(share * sorted.length) - 1)] ?? Number.NaN;
}

/** No samples yet. */
export function noSamples(): Samples {
  return { plain: [], ours: [] };
}

/**
 * Measures both sides in turns, so that whatever else the machine does falls on both, and each of them first
 * in every other round.
 *
 * @param warmUp how many rounds come before those that count
 */
export async function inTurns<T>(
  rounds: { readonly counted: number; readonly warmUp: number },
  plain: () => Promise<T>,
  ours: () => Promise<T>,
): Promise<Turns<T>> {
  const samples: Turns<T> = { plain: [], ours: [] };
  const sides = [
    { measure: plain, into: samples.plain },
    { measure: ours, into: samples.ours },
  ];
  for (let round = -rounds.warmUp; round < rounds.counted; round += 1) {
    sides.reverse();
    for (const { measure, into } of sides) {
      const value = await measure();
      if (round >= 0) into.push(value);
    }
  }
  return samples;
}

/** How many times the baseline, at the median. */
export function medianRatio({ plain, ours }: Samples): number {
  return median(ours) / median(plain);
}

/** The lines for the middle and the slow end of what was measured. */
export function medianAndP99(what: string, { plain, ours }: Samples): Compared[] {
  return [
    { what: `${what}, median`, plain: median(plain), ours: median(ours) },
    { what: `${what}, p99`, plain: percentile(plain, 0.99), ours: percentile(ours, 0.99) },
  ];
}

/** The same where there are too few samples for a p99. */
export function medianAndSlowest(what: string, { plain, ours }: Samples): Compared[] {
  return [
    { what: `${what}, median`, plain: median(plain), ours: median(ours) },
    { what: `${what}, slowest of ${ours.length}`, plain: Math.max(...plain), ours: Math.max(...ours) },
  ];
}

/** Prints a table: what was measured, the baseline, nodelease, and how many times the baseline that is. */
export function compare(
  title: string,
  unit: string,
  digits: number,
  rows: readonly Compared[],
  notes: readonly string[] = [],
): void {
  const reported = (value: number) => `${value.toFixed(digits)} ${unit}`;
  const lines = [
    ['', 'plain client', 'nodelease', 'ratio'],
    ...rows.map(({ what, plain, ours }) => [
      what,
      reported(plain),
      reported(ours),
      (ours / plain).toFixed(2),
    ]),
  ];
  const widths = [0, 1, 2, 3].map((column) => Math.max(...lines.map((line) => line[column]?.length ?? 0)));
  const text = lines.map((line) =>
    line.map((cell, column) => (column ? cell.padStart(widths[column] ?? 0) : cell.padEnd(widths[0] ?? 0))),
  );
  const body = [...text.map((cells) => cells.join('  ')), ...notes].map((line) => `  ${line}`);
  process.stdout.write(`\n${title}\n${body.join('\n')}\n`);
}
