import { ConfigError } from '../../../core/base/errors.js';

// The format of java.util.Properties: load(Reader) and store.

/** A comment, or a logical line: its last natural line does not end in an odd number of backslashes. */
const LINES = /[ \t\f]*(?:[#!][^\r\n]*|((?:\\(?:\r\n|[\s\S])|[^\\\r\n])*\\?))(?:\r\n|\r|\n|$)/g;
/** Up to the first separator that is not escaped. */
const PAIR = /^((?:\\[\s\S]|[^\\=: \t\f])*)[ \t\f]*[=:]?[ \t\f]*([\s\S]*)$/;
const ESCAPES: Readonly<Record<string, string>> = { t: '\t', n: '\n', r: '\r', f: '\f' };

/**
 * Of a key that is there twice the last value counts, as in Java.
 * @throws {ConfigError} naming the setting `label`
 */
export function parseProperties(text: string, label: string): ReadonlyMap<string, string> {
  const properties = new Map<string, string>();
  for (const [, line] of text.matchAll(LINES)) {
    if (!line) continue;
    const joined = line.replace(/(\\\\)|\\(?:\r\n|\r|\n)[ \t\f]*/g, (_, escaped = '') => escaped);
    const [, key = '', value = ''] = PAIR.exec(joined) ?? [];
    if (joined !== '') properties.set(unescaped(key, label), unescaped(value, label));
  }
  return properties;
}

function unescaped(text: string, label: string): string {
  return text.replace(
    /\\(?:u([0-9a-fA-F]{4})|([\s\S])|$)/g,
    (all, code: string | undefined, char: string | undefined) => {
      if (code !== undefined) return String.fromCharCode(Number.parseInt(code, 16));
      if (char === 'u') throw new ConfigError(label, all, '\\u with four hex digits');
      return char === undefined ? '' : (ESCAPES[char] ?? char);
    },
  );
}

/** All ASCII, so that Java reads it in either encoding. */
export function formatProperties(properties: ReadonlyMap<string, string>): string {
  const lines = [...properties].map(([key, value]) => `${escaped(key, / /g)}=${escaped(value, /^ /)}\n`);
  return lines.join('');
}

function escaped(text: string, spaces: RegExp): string {
  const names = Object.fromEntries(Object.entries(ESCAPES).map(([name, char]) => [char, name]));
  return text
    .replace(/[\\=:#!]/g, '\\$&')
    .replace(spaces, '\\ ')
    .replace(/[\t\n\r\f]/g, (char) => `\\${names[char]}`)
    .replace(/[^\x20-\x7e]/g, (unit) => `\\u${unit.charCodeAt(0).toString(16).padStart(4, '0')}`);
}
