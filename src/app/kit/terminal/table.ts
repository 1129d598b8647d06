import { type Color, paintFor } from './color.js';
import type { Screen } from './io.js';
import { cut, printable } from './text.js';

/**
 * One column of a table: its title, and `right` where its cells are aligned to the right, or the minimum
 * width to which it is cut where the table is too wide for the terminal. Others keep their width.
 */
export type Column = string | readonly [title: string, how: 'right' | number];

/** The text of a cell, and its color. */
export type Cell = string | readonly [text: string, color: Color | undefined];

/** The title of a column, or the text of a cell. */
export const textOf = (part: Column | Cell) => (typeof part === 'string' ? part : part[0]);

const GAP = '  ';

/**
 * A table as lines of text, the titles first. Control characters are replaced. Cells that do not fit the
 * terminal end in an ellipsis; without a terminal, lines are as long as necessary and without colors.
 */
export function renderTable(
  columns: readonly Column[],
  rows: readonly (readonly Cell[])[],
  screen: Screen | undefined,
): string[] {
  const paint = paintFor(screen);
  const titles = columns.map((column): Cell => [textOf(column), 'bold']);
  const cells = [titles, ...rows].map((row) =>
    row.map((cell) => ({
      text: printable(textOf(cell)),
      color: typeof cell === 'string' ? undefined : cell[1],
    })),
  );
  const wanted = columns.map((_, index) => Math.max(...cells.map((row) => row[index]?.text.length ?? 0)));
  const widths = screen === undefined ? wanted : squeeze(columns, wanted, screen.columns);
  return cells.map((row) => {
    const last = row.findLastIndex(({ text }) => text !== '');
    const parts = row.slice(0, last + 1).map(({ text, color }, index) => {
      const width = widths[index] ?? 0;
      const shown = cut(text, width);
      const padding = ' '.repeat(width - shown.length);
      const painted = shown === '' ? '' : paint(shown, color);
      if (columns[index]?.[1] === 'right') return padding + painted;
      return index === last ? painted : painted + padding;
    });
    return parts.join(GAP);
  });
}

/** Takes the excess width from the columns that have a minimum, the last one first. */
function squeeze(columns: readonly Column[], wanted: readonly number[], width: number): number[] {
  const widths = [...wanted];
  let excess = widths.reduce((sum, each) => sum + each, GAP.length * (columns.length - 1)) - width;
  for (let index = columns.length - 1; index >= 0 && excess > 0; index -= 1) {
    const column = columns[index];
    if (typeof column !== 'object' || column[1] === 'right') continue;
    const [title, minWidth] = column;
    const own = widths[index] ?? 0;
    const given = Math.min(excess, Math.max(0, own - Math.max(minWidth, title.length)));
    widths[index] = own - given;
    excess -= given;
  }
  return widths;
}

/** One line that is safe to show: cut to the terminal's width, and in a color where the terminal has them. */
export function fitLine(text: string, screen: Screen | undefined, color?: Color): string {
  const plain = printable(text);
  return paintFor(screen)(screen === undefined ? plain : cut(plain, screen.columns), color);
}
