import type { Screen } from './io.js';

/** A color of the terminal, or a weight. */
export type Color = 'red' | 'green' | 'yellow' | 'cyan' | 'bold' | 'dim';

const CODES: Readonly<Record<Color, readonly [on: number, off: number]>> = {
  red: [31, 39],
  green: [32, 39],
  yellow: [33, 39],
  cyan: [36, 39],
  bold: [1, 22],
  dim: [2, 22],
};

/** Colors a text, or returns it unchanged where the terminal or its user wants no colors. */
export type Paint = (text: string, color: Color | undefined) => string;

/** The {@link Paint} for a terminal, or for a pipe or a file where there is none. */
export function paintFor(screen: Pick<Screen, 'color'> | undefined): Paint {
  if (!screen?.color) return (text) => text;
  return (text, color) =>
    color === undefined ? text : `\x1b[${CODES[color][0]}m${text}\x1b[${CODES[color][1]}m`;
}
