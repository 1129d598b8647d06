import { ConfigError } from './errors.js';

/** A text may begin behind it as well. */
const SCHEME = '^(?:file:|digest:|[a-z][a-z0-9+.-]*://)?';
const BLANK = '[\\s\\p{Z}\\p{Cf}]';
/** Those of word processors too. */
const QUOTE = '["\'`\u00ab\u00bb\u2018-\u201f]';

/** What a text gets, unseen, from the way it is set, such as an env file with line ends of Windows. */
const STRAY: readonly (readonly [pattern: RegExp, expected: (found: string) => string])[] = [
  [/\r/, () => 'no carriage return in it, as in files with line ends of Windows'],
  [/\p{Cc}/u, (found) => `no control character in it (${nameOf(found)})`],
  [/\ufeff/, () => 'no byte order mark in it (U+FEFF)'],
  [new RegExp(`${SCHEME}${BLANK}|${BLANK}$`, 'iu'), noBlank],
  [new RegExp(`${SCHEME}${QUOTE}.*${QUOTE}$`, 'isu'), () => 'no quotes around it'],
];

/**
 * Checks that a text has no control characters and byte order marks, and neither blanks nor quotes at its
 * ends: with them it would be another value, such as the name of another store, that looks the same.
 *
 * @param shown what the error shows in its place: a secret is not shown
 * @throws {ConfigError} naming the setting `label`; also for what is no text, in JavaScript
 */
export function checkPlain(text: string, label: string, shown = text): void {
  if (typeof text !== 'string') throw new ConfigError(label, shown, 'a text');
  for (const [pattern, expected] of STRAY) {
    const found = pattern.exec(text)?.[0];
    if (found !== undefined) throw new ConfigError(label, shown, expected(found));
  }
}

/**
 * The items of a list with commas between them.
 * @throws {ConfigError} naming the setting `label`, for a blank at an end of one, or a semicolon
 */
export function splitList(text: string, label: string): readonly string[] {
  if (text.includes(';')) throw new ConfigError(label, text, 'commas between the items, not semicolons');
  const items = text.split(',');
  for (const item of items) checkPlain(item, label);
  return items;
}

function noBlank(found: string): string {
  const blank = found.slice(-1);
  return `no blank at its start or end${blank === ' ' ? '' : ` (${nameOf(blank)})`}`;
}

function nameOf(character: string): string {
  return `U+${(character.codePointAt(0) ?? 0).toString(16).toUpperCase().padStart(4, '0')}`;
}
