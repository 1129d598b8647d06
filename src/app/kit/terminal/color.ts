import { inspect } from 'node:util';
import type { Screen } from './io.js';

/** A color of the terminal, or a weight. */
export type Color = 'red' | 'green' | 'yellow' | 'cyan' | 'bold' | 'dim';

/** Colors a text, or returns it unchanged where the terminal or its user wants no colors. */
export type Paint = (text: string, color: Color | undefined) => string;

/** The {@link Paint} for a terminal, or for a pipe or a file where there is none. */
export function paintFor(screen: Pick<Screen, 'color'> | undefined): Paint {
  if (!screen?.color) return (text) => text;
  return (text, color) => {
    const codes = color && inspect.colors[color];
    return codes ? `\x1b[${codes[0]}m${text}\x1b[${codes[1]}m` : text;
  };
}
