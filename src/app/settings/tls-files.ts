import { readFileSync, statSync } from 'node:fs';
import { ConfigError } from '../../core/base/errors.js';
import { codeOf, Damage, kindOf } from '../../core/base/files.js';
import { prepareTlsFiles, type TlsFiles } from '../../core/base/tls.js';
import type { Given } from '../../core/settings/sources.js';
import type { AllSettings, SettingName } from './settings-table.js';

/** More bytes than all CAs that an operating system trusts have. */
const MAX_PEM = 2 ** 20;

/**
 * The contents of the files that settings name, checked.
 *
 * @param server what the names of the settings begin with
 * @throws {ConfigError} naming the setting as the user gave it, the value, and what was expected
 */
export function readTlsFiles(all: AllSettings, server: string): TlsFiles {
  const given = (part: keyof TlsFiles) => all.find(`${server}-${part}` as SettingName);
  const contents = (part: keyof TlsFiles) => {
    const { label = '', text } = given(part) ?? {};
    if (text === undefined) return undefined;
    try {
      const there = statSync(text);
      // A pipe may have no end, and a device has none.
      if (!there.isFile()) throw new Damage(text, kindOf(there));
      if (there.size > MAX_PEM) throw new Damage(text, `more than ${MAX_PEM} bytes`);
      return readFileSync(text);
    } catch (error) {
      const why = error instanceof Damage ? error.what : codeOf(error);
      throw new ConfigError(label, text, `a file that can be read (${why})`);
    }
  };
  const files = { ca: contents('ca'), cert: contents('cert'), key: contents('key') };
  prepareTlsFiles(files, `--${server}-`, given);
  return files;
}

/**
 * The first of these settings that is given, for a connection without TLS. As a variable too: without a word,
 * what is meant to be encrypted would not be.
 */
export function tlsFile(all: AllSettings, server: string): Given | undefined {
  const given = ['ca', 'cert', 'key'].map((part) => all.find(`${server}-${part}` as SettingName));
  return given.find((each) => each !== undefined);
}
