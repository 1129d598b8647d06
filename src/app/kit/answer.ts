import { ExitCode } from './exit-codes.js';
import type { Io, Screen } from './terminal/io.js';
import { type Cell, type Column, renderTable } from './terminal/table.js';
import { jsonLine, printable } from './terminal/text.js';

/** Who gets an answer, and in which form: a call of a command. */
export interface Asker {
  readonly options: { readonly json?: boolean };
  readonly io: Io;
}

/** Writes one line to standard error. */
export function complain(io: Io, text: string): void {
  io.stderr(`nodelease: ${printable(text)}\n`);
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
