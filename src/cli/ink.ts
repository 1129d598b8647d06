/** A colour of the terminal, or a weight. */
export type Ink = 'red' | 'green' | 'yellow' | 'cyan' | 'bold' | 'dim';

const CODES: Readonly<Record<Ink, readonly [on: number, off: number]>> = {
  red: [31, 39],
  green: [32, 39],
  yellow: [33, 39],
  cyan: [36, 39],
  bold: [1, 22],
  dim: [2, 22],
};

/** Puts a text in ink, or leaves it as it is where the terminal, or its user, wants no colours. */
export type Paint = (text: string, ink: Ink | undefined) => string;

/** The {@link Paint} for a terminal with colours, or for anything else. */
export function paintFor(color: boolean): Paint {
  return color ? (text, ink) => (ink === undefined ? text : `\x1b[${CODES[ink][0]}m${text}\x1b[${CODES[ink][1]}m`) : (text) => text;
}

/** One line of text that is safe to show: what comes from a store may hold control characters, and with them a terminal's commands. */
export function printable(text: string): string {
  return text.replace(/[\p{Cc}\p{Cf}\p{Zl}\p{Zp}]/gu, '\uFFFD');
}
