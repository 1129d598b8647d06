import { ConfigError } from '../../base/errors.js';
import { parseExactJson } from '../../base/exact-json.js';
import { variablesOf } from '../../configuration/environment.js';
import { formatProperties, parseProperties } from './properties-format.js';

/** How a file holds properties. */
interface FileFormat {
  /** @throws {ConfigError} naming the setting `label` */
  parse(text: string, label: string): ReadonlyMap<string, string>;
  /** @throws {ConfigError} where the format cannot express them */
  format(properties: ReadonlyMap<string, string>): string;
}

const FORMATS: Readonly<Record<string, FileFormat>> = {
  properties: { parse: parseProperties, format: formatProperties },
  json: { parse: parseJson, format: (properties) => `${JSON.stringify(Object.fromEntries(properties), undefined, 2)}\n` },
  env: { parse: parseEnv, format: formatEnv },
};

/** The format of that name, else that of the file's name, else properties. @throws {ConfigError} */
export function fileFormat(name: string | undefined, file = ''): FileFormat {
  const [, extension = 'properties'] = /\.(json|env)$/.exec(file) ?? /(?:^|\/)\.(env)$/.exec(file) ?? [];
  const format = FORMATS[name ?? extension];
  if (format) return format;
  throw new ConfigError('--format', name, `one of ${Object.keys(FORMATS).join(', ')}`);
}

/** Objects within objects are keys with a ".", and items of arrays have their index in brackets, as in Spring. */
function parseJson(text: string, label: string): ReadonlyMap<string, string> {
  let root: unknown;
  try {
    root = parseExactJson(text);
  } catch (error) {
    throw new ConfigError(label, '…', `JSON (${(error as Error).message})`);
  }
  const properties = new Map<string, string>();
  const visit = (key: string, value: unknown): void => {
    if (Array.isArray(value)) for (const [index, item] of value.entries()) visit(`${key}[${index}]`, item);
    else if (typeof value === 'object' && value !== null)
      for (const [name, item] of Object.entries(value)) visit(key === '' ? name : `${key}.${name}`, item);
    else if (key === '' || value === null) throw new ConfigError(label, key, 'an object of texts, numbers, booleans, arrays and objects');
    else properties.set(key, String(value));
  };
  visit('', root);
  return properties;
}

/** A line of an env file: a name, and a value that may be quoted and then span lines. */
const ENV_LINE =
  /^[ \t]*(?:export[ \t]+)?([\w.-]+)[ \t]*=[ \t]*(?:'([^']*)'|"((?:\\[\s\S]|[^"\\])*)"|([^\r\n]*?))[ \t]*(?:(?:^|[ \t])#[^\r\n]*)?$/gm;

/** The variable DB_URL stands for the key db.url, as in Spring's relaxed binding. */
function parseEnv(text: string, label: string): ReadonlyMap<string, string> {
  const rest = text.replace(ENV_LINE, '').replace(/^[ \t]*(?:#.*)?$/gm, '');
  const [strange] = rest.trim().split('\n');
  if (strange) throw new ConfigError(label, strange, 'lines of the form NAME=value');
  const found = [...text.replace(/\r\n/g, '\n').matchAll(ENV_LINE)].map(([, name = '', single, double, bare]) => {
    const value = single ?? double?.replace(/\\([\s\S])/g, (_, char: string) => (char === 'n' ? '\n' : char)) ?? bare ?? '';
    return [name.toLowerCase().replaceAll('_', '.'), value] as const;
  });
  return new Map(found);
}

/** For shells, and for programs that read such files as they do. */
function formatEnv(properties: ReadonlyMap<string, string>): string {
  const quoted = (value: string) => {
    if (/^[\w.,:/@%+-]*$/.test(value)) return value;
    return value.includes("'") ? `"${value.replace(/[\\"$`]/g, '\\$&')}"` : `'${value}'`;
  };
  return [...variablesOf(properties)].map(([name, value]) => `${name}=${quoted(value)}\n`).join('');
}
