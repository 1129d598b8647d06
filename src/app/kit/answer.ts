import { EXIT_CODES, ExitCode, type FailureCode, type Io, type Screen } from './io.js';
import { type Color, cut, jsonLine, paintFor, printable } from './terminal/text.js';

/** Who gets an answer, and in which form: a call of a command. */
export interface Asker {
  readonly options: { readonly json?: boolean };
  readonly io: Io;
}

/** Writes one line to standard error. */
export function complain(io: Io, text: string): void {
  io.stderr(`nodelease: ${printable(text)}\n`);
}

/** Reports what ends a command, with its code at the end. Returns the exit code. */
export function fail(io: Io, code: FailureCode, text: string): number {
  complain(io, `${text} [${code}]`);
  return EXIT_CODES[code];
}

/** Writes one line of the answer. */
export function say(io: Io, text: string): void {
  io.stdout(`${printable(text)}\n`);
}

/** Writes a value byte for byte, for scripts; a terminal might take it for commands. */
export function sayValue(io: Io, value: string | Buffer): void {
  if (io.screen()) say(io, value.toString());
  else io.stdout(Buffer.concat([Buffer.from(value), Buffer.from('\n')]));
}

/** Writes the answer, or a part of it, as one line of JSON. */
export function sayJson(io: Io, value: unknown): void {
  io.stdout(jsonLine(value));
}

/** Writes lines of the answer that are safe to show, as those of a table. */
export function sayLines(io: Io, lines: readonly string[]): void {
  io.stdout(lines.map((line) => `${line}\n`).join(''));
}

/** The columns of a table, and its rows. */
export type Table = readonly [columns: readonly Column[], rows: readonly (readonly Cell[])[]];

/** Tables, and the lines below them, with blank lines between. */
export function tableLines(
  tables: readonly Table[],
  lines: readonly string[],
  screen: Screen | undefined,
): string[] {
  const parts = tables.map(([columns, rows]) => renderTable(columns, rows, screen));
  if (lines.length > 0) parts.push(lines.map(printable));
  return parts.flatMap((part, at) => (at > 0 ? ['', ...part] : part));
}

/** What a command that shows something answers. */
export interface Answer {
  /** The answer of `--json`. */
  readonly report: unknown;
  /** The whole answer where there is nothing to show. */
  readonly empty?: string | undefined;
  readonly tables?: readonly Table[];
  /** What is below the tables: one line, or several. */
  readonly lines?: readonly string[];
}

/** The tables that have rows. */
export const withRows = (...tables: readonly Table[]) => tables.filter(([, rows]) => rows.length > 0);

/** Shows the answer of a command, in the form that its caller wants. Returns the exit code: success. */
export function answer({ options, io }: Asker, { report, empty, tables = [], lines = [] }: Answer): number {
  if (options.json) sayJson(io, report);
  else if (empty !== undefined) say(io, empty);
  else sayLines(io, tableLines(tables, lines, io.screen()));
  return ExitCode.ok;
}

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
  const wanted = columns.map((_, index) =>
    cells.reduce((width, row) => Math.max(width, row[index]?.text.length ?? 0), 0),
  );
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
