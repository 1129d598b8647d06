import { ConfigError } from '../../core/base/errors.js';
import { OWN_VARIABLES } from '../supervisor/env-templates.js';

/** Variables of a command, by their names. */
export type Variables = ReadonlyMap<string, string>;

/**
 * Names that nodelease sets itself, and those by which a program is found, or learns what to load, whom to
 * trust or who it is: a publisher must not run code with them.
 */
const REFUSED = new RegExp(
  [
    OWN_VARIABLES.source,
    '^PATH$|^IFS$|^ENV$|^BASH_ENV$|^BASHOPTS$|^SHELLOPTS$|^BASH_FUNC_|^LD_|^DYLD_|^GLIBC_TUNABLES$|^GCONV_PATH$',
    '^NODE_(OPTIONS|PATH|REPL_EXTERNAL_MODULE|EXTRA_CA_CERTS|TLS_REJECT_UNAUTHORIZED)$|^(JAVA_TOOL|JDK_JAVA|_JAVA)_OPTIONS$|^CLASSPATH$|^PERL5(OPT|LIB|DB)$|^RUBY(OPT|LIB)$',
    '^PYTHON|^PHPRC$|^PHP_INI_SCAN_DIR$|^DOTNET_STARTUP_HOOKS$|^LUA_INIT|^ERL_([AZ]|OTP.*_)?FLAGS$|^OPENSSL_|^GIT_|^AWS_|^BROWSER$',
  ].join('|'),
);

/** What Linux takes as one variable, `NAME=value` with the byte behind it, in bytes. */
const MAX_VARIABLE_BYTES = 128 * 1024;

/**
 * The name of the environment variable for a key, as Spring's relaxed binding has it but for dashes:
 * `DB_POOL_SIZE` for `db.pool-size`.
 */
const variableName = (key: string) =>
  key
    .toUpperCase()
    .replace(/[^A-Z0-9]+/g, '_')
    .replace(/(.)_$/, '$1')
    .replace(/^(?=\d)/, '_');

/**
 * Properties as variables.
 * @throws {ConfigError} where two keys have the same variable, or a value cannot be one
 */
export function variablesOf(properties: ReadonlyMap<string, string>): Variables {
  const keys = new Map<string, string>();
  for (const [key, value] of properties) {
    const name = variableName(key);
    const other = keys.get(name);
    if (other !== undefined) throw new ConfigError(key, name, `another variable than ${other} has`);
    if (value.includes('\0'))
      throw new ConfigError(key, '…', 'a value without NUL, as the value of a variable');
    keys.set(name, key);
  }
  return new Map([...keys].map(([name, key]) => [name, properties.get(key) ?? '']));
}

/**
 * The properties of a configuration as variables of a command.
 * @throws {ConfigError} as {@link variablesOf}, and for a variable that must not be set
 */
export function configVariables(values: ReadonlyMap<string, { readonly value: string }>): Variables {
  for (const [key, { value }] of values) {
    const name = variableName(key);
    if (REFUSED.test(name)) {
      const expected =
        'another key, for nodelease sets this variable itself, or programs are found or loaded by it';
      throw new ConfigError(key, name, expected);
    }
    const valueBytes = Buffer.byteLength(value);
    const maxBytes = MAX_VARIABLE_BYTES - name.length - '=\0'.length;
    if (valueBytes > maxBytes) {
      const expected = `a value of at most ${maxBytes} bytes, as the value of a variable`;
      throw new ConfigError(key, `${valueBytes} bytes`, expected);
    }
  }
  return variablesOf(new Map([...values].map(([key, { value }]) => [key, value])));
}
