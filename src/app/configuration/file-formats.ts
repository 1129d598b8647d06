import { escapeKey, escapeValue } from 'properties-file/escape';
import { Properties } from 'properties-file/parser';
import { ConfigError } from '../../core/base/errors.js';
import { parseExactJson } from '../../core/base/fields.js';
import { variablesOf } from './config-variables.js';

/** How a file holds properties. */
interface FileFormat {
  /** @throws {ConfigError} naming the setting `label` */
  parse(text: string, label: string): ReadonlyMap<string, string>;
  /** @throws {ConfigError} where the format cannot express them */
  format(properties: ReadonlyMap<string, string>): string;
}

const FORMATS = {
  properties: { parse: parseProperties, format: formatProperties },
  json: {
    parse: parseJson,
    format: (properties) => `${JSON.stringify(Object.fromEntries(properties), undefined, 2)}\n`,
  },
  env: { parse: parseEnv, format: formatEnv },
} satisfies Readonly<Record<string, FileFormat>>;
export type FormatName = keyof typeof FORMATS;

/**
 * The format of that name, else that of the file's name, else properties.
 *
 * @throws {ConfigError} for YAML, whose lines could be read as properties
 */
export function fileFormat(name: FormatName | undefined, file = ''): FileFormat {
  if (name === undefined && /\.ya?ml$/i.test(file))
    throw new ConfigError('FILE', file, 'properties, JSON or env, not YAML');
  const isNamed = (format: FormatName) => file.toLowerCase().endsWith(`.${format}`);
  return FORMATS[name ?? (['json', 'env'] as const).find(isNamed) ?? 'properties'];
}

/** As java.util.Properties loads it: of a key that is there twice the last value counts. */
function parseProperties(text: string, label: string) {
  try {
    const lines = new Properties(text).getProperties();
    // A backslash alone on its line is none.
    const own = lines.filter(({ escapedKey, separatorChar }) => escapedKey !== '' || separatorChar);
    return new Map(own.map(({ key, value }) => [key, value]));
  } catch {
    // The only failure of the parser.
    throw new ConfigError(label, '\\u', '\\u with four hex digits');
  }
}

/** All ASCII, so that Java reads it in either encoding. */
function formatProperties(properties: ReadonlyMap<string, string>) {
  return [...properties]
    .map(([key, value]) => `${escapeKey(key, true)}=${escapeValue(value, true)}\n`)
    .join('');
}

/**
 * Objects within objects are keys with a ".", and items of arrays have their index in brackets, as in Spring.
 */
function parseJson(text: string, label: string) {
  const properties = new Map<string, string>();
  const visit = (key: string, value: unknown): void => {
    if (typeof value === 'object' && value !== null && !(key === '' && Array.isArray(value))) {
      const keyOf = (name: string) =>
        Array.isArray(value) ? `${key}[${name}]` : key === '' ? name : `${key}.${name}`;
      for (const [name, item] of Object.entries(value)) visit(keyOf(name), item);
    } else if (key === '' || value === null)
      throw new ConfigError(label, key, 'an object of texts, numbers, booleans, arrays and objects');
    else properties.set(key, String(value));
  };
  try {
    visit('', parseExactJson(text));
  } catch (error) {
    throw error instanceof ConfigError
      ? error
      : new ConfigError(label, '…', `JSON (${(error as Error).message})`);
  }
  return properties;
}

/**
 * A line of an env file: a name, and a value that may be quoted and then span lines; or a comment, or
 * nothing.
 */
const ENV_LINE =
  /^[ \t]*(?:(?:export[ \t]+)?([\w.-]+)[ \t]*=[ \t]*(?:'([^']*)'|"((?:\\[\s\S]|[^"\\])*)"|([^\n]*?)))?[ \t]*(?:(?:^|[ \t])#[^\n]*)?$/gm;

/** The variable DB_URL is the key db.url, as in Spring's relaxed binding. */
function parseEnv(text: string, label: string) {
  // Other line ends belong to values.
  const lines = /(^|[^\r])\n/.test(text) ? text : text.replace(/\r\n/g, '\n');
  const [strange] = lines.replace(ENV_LINE, '').trim().split('\n');
  if (strange) throw new ConfigError(label, strange, 'lines of the form NAME=value');
  const found = [...lines.matchAll(ENV_LINE)].flatMap(([, name, single, double, bare = '']) => {
    const value =
      single ?? double?.replace(/\\([\s\S])/g, (_, char: string) => (char === 'n' ? '\n' : char)) ?? bare;
    return name === undefined ? [] : [[name.toLowerCase().replaceAll('_', '.'), value] as const];
  });
  return new Map(found);
}

/** For shells, and for programs that read such files as they do. */
function formatEnv(properties: ReadonlyMap<string, string>) {
  const quoted = (value: string) => {
    if (/^[\w.,:/@%+-]*$/.test(value)) return value;
    return value.includes("'") ? `"${value.replace(/[\\"$`]/g, '\\$&')}"` : `'${value}'`;
  };
  return [...variablesOf(properties)].map(([name, value]) => `${name}=${quoted(value)}\n`).join('');
}
