import { ConfigError } from '../../base/errors.js';
import { variablesOf } from '../../configuration/environment.js';

/** Variables of a command, by their names. */
export type Variables = ReadonlyMap<string, string>;

/** Names that nodelease sets itself, and those by which a program is found, or told what to load: a publisher must not run code with them. */
const REFUSED = new RegExp(
  [
    '^NODELEASE_|^NODE_ID(_VERSION)?$|^PATH$|^IFS$|^ENV$|^BASH_ENV$|^BASHOPTS$|^SHELLOPTS$|^BASH_FUNC_|^LD_|^DYLD_|^GLIBC_TUNABLES$|^GCONV_PATH$',
    '^NODE_(OPTIONS|PATH|REPL_EXTERNAL_MODULE)$|^(JAVA_TOOL|JDK_JAVA|_JAVA)_OPTIONS$|^CLASSPATH$|^PERL5(OPT|LIB|DB)$|^RUBY(OPT|LIB)$',
    '^PYTHON(PATH|HOME|STARTUP|INSPECT)$|^PHPRC$|^DOTNET_STARTUP_HOOKS$',
  ].join('|'),
);

/**
 * The properties of a configuration as variables of a command.
 *
 * @param values by their keys
 * @throws {ConfigError} naming the key, and never the value: one whose variable must not be set; two of the same variable; a value that no variable can
 *   have
 */
export function configVariables(values: ReadonlyMap<string, { readonly value: string }>): Variables {
  const variables = variablesOf(new Map([...values].map(([key, { value }]) => [key, value])));
  const refused = [...variables.keys()].findIndex((name) => REFUSED.test(name));
  if (refused < 0) return variables;
  const [key, name] = [[...values.keys()][refused], [...variables.keys()][refused]];
  throw new ConfigError(`${key}`, name, 'another key, for nodelease sets this variable itself, or programs are found or loaded by it');
}
