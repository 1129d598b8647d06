import { ConfigError } from '../base/errors.js';

/**
 * Whether an entry is left out, with everything below it, by its path from the top of the version's
 * directory.
 */
export type Exclusion = (path: string) => boolean;

/**
 * The entries that patterns leave out. A pattern without a slash matches names at any depth: `runtime`,
 * `*.tmp`. A pattern with a slash matches a path from the top: `logs/old`. `*` matches any characters except
 * a slash.
 *
 * @throws {ConfigError} naming the setting `label`
 */
export function exclusionOf(patterns: readonly string[], label: string): Exclusion {
  const tests = patterns.map((pattern) => {
    const parts = pattern.split('/');
    if (parts.some((part) => part === '' || part === '.' || part === '..'))
      throw new ConfigError(
        label,
        pattern,
        'a name such as runtime or *.tmp, or a path from the top such as logs/old',
      );
    return (path: string) => {
      const names = parts.length === 1 ? [path.slice(path.lastIndexOf('/') + 1)] : path.split('/');
      return names.length === parts.length && parts.every((part, at) => matches(part, names[at] ?? ''));
    };
  });
  return (path) => tests.some((test) => test(path));
}

/**
 * Whether a name matches a pattern. Each word between stars is matched at its first occurrence, so no
 * backtracking is needed.
 */
function matches(pattern: string, name: string): boolean {
  const [first = '', ...words] = pattern.split('*');
  const last = words.pop();
  if (last === undefined) return name === pattern;
  if (!name.startsWith(first)) return false;
  let at = first.length;
  for (const word of words) {
    const found = name.indexOf(word, at);
    if (found === -1) return false;
    at = found + word.length;
  }
  return at + last.length <= name.length && name.endsWith(last);
}
