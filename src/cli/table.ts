import type { Color, Paint } from './color.js';
import { printable } from './text.js';

/** One column of a table. */
export interface Column {
  readonly title: string;
  /** @default left */
  readonly align?: 'left' | 'right';
  /** The minimum width of the column where the table is too wide. @default never squeezed */
  readonly minWidth?: number;
}

/** The text of a cell, and its colour. */
export interface Cell {
  readonly text: string;
  readonly color?: Color | undefined;
}

/** How a table is laid out. */
export interface TableOptions {
  /** Characters in a line. Without it, lines are as long as they have to be. */
  readonly width?: number | undefined;
  readonly paint: Paint;
}

const GAP = '  ';

/** A table as lines of text, the titles first. Cells that do not fit end in an ellipsis; control characters are replaced. */
export function renderTable(columns: readonly Column[], rows: readonly (readonly Cell[])[], { width, paint }: TableOptions): string[] {
  const texts = rows.map((row) => columns.map((_, index) => printable(row[index]?.text ?? '')));
  const wanted = columns.map(({ title }, index) => Math.max(title.length, ...texts.map((row) => row[index]?.length ?? 0)));
  const widths = width === undefined ? wanted : squeeze(columns, wanted, width);
  const line = (cells: readonly string[], colors: readonly (Color | undefined)[]) => {
    const last = cells.findLastIndex((text) => text !== '');
    const parts = columns.slice(0, last + 1).map(({ align }, index) => {
      const room = widths[index] ?? 0;
      const text = cut(cells[index] ?? '', room);
      const padding = ' '.repeat(room - text.length);
      const painted = text === '' ? '' : paint(text, colors[index]);
      if (align === 'right') return padding + painted;
      return index === last ? painted : painted + padding;
    });
    return parts.join(GAP);
  };
  const titles = columns.map(({ title }) => title);
  return [
    line(
      titles,
      titles.map(() => 'bold'),
    ),
    ...texts.map((cells, index) =>
      line(
        cells,
        columns.map((_, column) => rows[index]?.[column]?.color),
      ),
    ),
  ];
}

/** Cuts a text that is longer than `room` characters, with an ellipsis in its last place. */
export function cut(text: string, room: number): string {
  return text.length <= room ? text : `${text.slice(0, Math.max(0, room - 1))}…`.slice(0, room);
}

/** Takes what is too much from the squeezable columns, the last one first. */
function squeeze(columns: readonly Column[], wanted: readonly number[], width: number): number[] {
  const widths = [...wanted];
  let excess = widths.reduce((sum, each) => sum + each, GAP.length * (columns.length - 1)) - width;
  for (let index = columns.length - 1; index >= 0 && excess > 0; index -= 1) {
    const { minWidth, title } = columns[index] ?? { title: '' };
    if (minWidth === undefined) continue;
    const room = widths[index] ?? 0;
    const given = Math.min(excess, Math.max(0, room - Math.max(minWidth, title.length)));
    widths[index] = room - given;
    excess -= given;
  }
  return widths;
}
