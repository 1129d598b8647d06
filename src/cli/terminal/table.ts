import { type Color, paintFor } from './color.js';
import type { Screen } from './io.js';
import { cut, printable } from './text.js';

/** One column of a table. */
export interface Column {
  readonly title: string;
  /** @default left */
  readonly align?: 'left' | 'right';
  /** The minimum width where the table is too wide for the terminal. @default the column keeps its width */
  readonly minWidth?: number;
}

/** The text of a cell, and its color. */
export interface Cell {
  readonly text: string;
  readonly color?: Color | undefined;
}

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
  const titles: Cell[] = columns.map(({ title }) => ({ text: title, color: 'bold' }));
  const cells = [
    titles,
    ...rows.map((row) => row.map(({ text, color }) => ({ text: printable(text), color }))),
  ];
  const wanted = columns.map((_, index) => Math.max(...cells.map((row) => row[index]?.text.length ?? 0)));
  const widths = screen === undefined ? wanted : squeeze(columns, wanted, screen.columns);
  return cells.map((row) => {
    const last = row.findLastIndex(({ text }) => text !== '');
    const parts = row.slice(0, last + 1).map(({ text, color }, index) => {
      const width = widths[index] ?? 0;
      const shown = cut(text, width);
      const padding = ' '.repeat(width - shown.length);
      const painted = shown === '' ? '' : paint(shown, color);
      if (columns[index]?.align === 'right') return padding + painted;
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
    const { minWidth, title } = columns[index] ?? { title: '' };
    if (minWidth === undefined) continue;
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
