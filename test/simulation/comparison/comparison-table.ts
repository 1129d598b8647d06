import type { ComparedFaults } from './compared-faults.js';
import type { BrokenPromise, Cell } from './comparison-cell.js';
import type { Contestant } from './contestants.js';

/**
 * What was found out under one kind of fault: a cell for each contestant, undefined for one that lacks what
 * the fault is about.
 */
export interface ComparisonRow {
  readonly faults: ComparedFaults;
  readonly cells: readonly (Cell | undefined)[];
}

/** Promises whose breaking may corrupt data; the others cost time. */
const SAFETY: readonly string[] = ['exclusion', 'fencing', 'objects'];

/**
 * The comparison as a table in Markdown: the share of the seeds in which a promise was the first to break.
 */
export function comparisonTable(contestants: readonly Contestant[], rows: readonly ComparisonRow[]): string {
  const lines = [
    ['fault', ...contestants.map(({ title }) => title)],
    ['---', ...contestants.map(() => '---')],
    ...rows.map(({ faults, cells }) => [faults.name, ...cells.map(cellText)]),
  ];
  return lines.map((cells) => `| ${cells.join(' | ')} |\n`).join('');
}

/** The first seed of each broken promise, one a line, to be replayed. */
export function firstSeeds(contestants: readonly Contestant[], rows: readonly ComparisonRow[]): string {
  return rows
    .flatMap(({ faults, cells }) =>
      cells.flatMap((cell, column) =>
        (cell?.broken ?? []).map(
          ({ invariant, seeds, first, text }) =>
            `- ${contestants[column]?.title}, ${faults.name}: ${invariant} in ${seeds} of ${cell?.seeds} seeds, first in seed ${first}: ${text}\n`,
        ),
      ),
    )
    .join('');
}

function cellText(cell: Cell | undefined): string {
  if (cell === undefined) return 'not offered';
  if (cell.broken.length === 0) return 'holds';
  return cell.broken.map((promise) => promiseText(promise, cell.seeds)).join(', ');
}

function promiseText({ invariant, seeds }: BrokenPromise, of: number): string {
  const text = `${invariant} ${share(seeds / of)}`;
  return SAFETY.includes(invariant) ? `**${text}**` : text;
}

/**
 * As few digits as there may be without what is rare looking like nothing, or what is nearly always so like a
 * certainty.
 */
function share(part: number): string {
  const percent = 100 * part;
  if (percent === 100) return '100 %';
  if (percent < 10) return `${Number(percent.toPrecision(2))} %`;
  return `${percent > 99 ? Math.min(99.9, percent).toFixed(1) : percent.toFixed(0)} %`;
}
