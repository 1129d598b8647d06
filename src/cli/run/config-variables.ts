import { ConfigError } from '../../base/errors.js';

/** Names that nodelease sets itself, and those by which a program is found, or told what to load: whoever may publish must not run code with them. */
const REFUSED = new RegExp(
  [
    '^NODELEASE_|^NODE_ID(_VERSION)?$|^PATH$|^IFS$|^ENV$|^BASH_ENV$|^BASHOPTS$|^SHELLOPTS$|^BASH_FUNC_|^LD_|^DYLD_|^GLIBC_TUNABLES$|^GCONV_PATH$',
    '^NODE_(OPTIONS|PATH|REPL_EXTERNAL_MODULE)$|^(JAVA_TOOL|JDK_JAVA|_JAVA)_OPTIONS$|^CLASSPATH$|^PERL5(OPT|LIB|DB)$|^RUBY(OPT|LIB)$',
    '^PYTHON(PATH|HOME|STARTUP|INSPECT)$|^PHPRC$|^DOTNET_STARTUP_HOOKS$',
  ].join('|'),
);

/** Variables of a command, by their names. */
export type Variables = Readonly<Record<string, string>>;

const NAME = /^[A-Z_][A-Z0-9_]*$/;

/** The variable of a key: `db.pool-size` is `DB_POOL_SIZE`, `servers[0].host` is `SERVERS_0_HOST`. */
export function variableOf(key: string): string {
  return key.replaceAll(']', '').replace(/[.[-]/g, '_').toUpperCase();
}

/**
 * The properties of a configuration as variables of a command.
 *
 * @param values by their keys
 * @throws {ConfigError} naming the key, and never the value: one whose variable has no valid name, or must not be set; two of the same variable; a
 *   value that no variable can have
 */
export function configVariables(config: string, values: ReadonlyMap<string, { readonly value: string }>): Variables {
  const keys = new Map<string, string>();
  const variables: Record<string, string> = {};
  for (const [key, { value }] of values) {
    const name = variableOf(key);
    const refuse = (expected: string) => new ConfigError('--config', config, `${expected}: ${key} is ${name}`);
    if (!NAME.test(name)) throw refuse('keys of ASCII letters, digits and ._-[], since they become variables');
    if (REFUSED.test(name)) throw refuse('no key for a variable that nodelease sets itself, or by which programs are loaded');
    const other = keys.get(name);
    if (other !== undefined) throw refuse(`one key a variable, and ${other} is the same`);
    if (value.includes('\0')) throw refuse('values without NUL characters');
    keys.set(name, key);
    variables[name] = value;
  }
  return variables;
}
