import { readFileSync } from 'node:fs';
import { ConfigError } from '../base/errors.js';
import { type GivenTls, prepareTlsFiles, type TlsFiles } from '../base/tls.js';

/**
 * The contents of the files that settings name, checked.
 *
 * @param prefix what comes before `ca`, `cert` and `key` in the names of the settings
 * @throws {ConfigError} naming the setting as the user gave it, the value, and what was expected
 */
export function readTlsFiles(given: GivenTls, prefix: string): TlsFiles {
  const contents = (part: keyof TlsFiles) => {
    const { label = '', text } = given(part) ?? {};
    try {
      return text === undefined ? undefined : readFileSync(text);
    } catch (error) {
      throw new ConfigError(
        label,
        text,
        `a file that can be read (${(error as NodeJS.ErrnoException).code})`,
      );
    }
  };
  const files = { ca: contents('ca'), cert: contents('cert'), key: contents('key') };
  prepareTlsFiles(files, prefix, given);
  return files;
}
