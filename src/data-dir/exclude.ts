import { ConfigError } from '../base/errors.js';

/** Whether something is left out, told by its path from the top of the version's directory, and so is all that is below it. */
export type Exclusion = (path: string) => boolean;

/**
 * What patterns leave out. One without a slash is about every name, at any depth: `runtime`, `*.tmp`. One with a slash is about the path from the
 * top: `logs/old`. `*` stands for any characters but a slash.
 *
 * @throws {ConfigError} naming the setting `label`
 */
export function exclusionOf(patterns: readonly string[], label: string): Exclusion {
  const tests = patterns.map((pattern) => {
    const parts = pattern.split('/');
    if (parts.some((part) => part === '' || part === '.' || part === '..'))
      throw new ConfigError(label, pattern, 'a name such as runtime or *.tmp, or a path from the top such as logs/old');
    const words = pattern.split('*').map((word) => word.replace(/[\\^$.|?+()[\]{}]/g, '\\$&'));
    const regExp = new RegExp(`^${words.join('[^/]*')}$`, 's');
    return (path: string) => regExp.test(parts.length === 1 ? path.slice(path.lastIndexOf('/') + 1) : path);
  });
  return (path) => tests.some((test) => test(path));
}
