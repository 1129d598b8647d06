import { ConfigError } from '../base/errors.js';

/** The name of the environment variable for a key, as Spring's relaxed binding has it but for dashes: `DB_POOL_SIZE` for `db.pool-size`. */
export const variableName = (key: string) =>
  key
    .toUpperCase()
    .replace(/[^A-Z0-9]+/g, '_')
    .replace(/(.)_$/, '$1')
    .replace(/^(?=\d)/, '_');

/** Properties as environment variables. @throws {ConfigError} where two keys have the same variable, or a value cannot be one */
export function variablesOf(properties: ReadonlyMap<string, string>): ReadonlyMap<string, string> {
  const keys = new Map<string, string>();
  for (const [key, value] of properties) {
    const name = variableName(key);
    const other = keys.get(name);
    if (other !== undefined) throw new ConfigError(key, name, `another variable than ${other} has`);
    if (value.includes('\0')) throw new ConfigError(key, '…', 'a value without NUL, as the value of a variable');
    keys.set(name, key);
  }
  return new Map([...properties].map(([key, value]) => [variableName(key), value]));
}
