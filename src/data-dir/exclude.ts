import { ConfigError } from '../base/errors.js';

/**
 * Whether something is left out, told by its path from the top of the version's directory, and so is all that
 * is below it.
 */
export type Exclusion = (path: string) => boolean;

/**
 * What patterns leave out. One without a slash is about every name, at any depth: `runtime`, `*.tmp`. One
 * with a slash is about the path from the top: `logs/old`. `*` stands for any characters but a slash.
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
 * Whether a name is a pattern's. Each word between stars is taken where it comes first, so there is nothing
 * to go back to.
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
