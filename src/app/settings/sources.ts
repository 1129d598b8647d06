import { ConfigError } from '../../core/base/errors.js';
import { checkPlain } from '../../core/base/plain-text.js';
import { isServiceLink } from './service-links.js';
import {
  environmentName,
  kindOf,
  type NamedSetting,
  rowOf,
  SETTINGS,
  type SettingDefaults,
  type SettingName,
  type SettingValue,
} from './settings-table.js';

/** What the settings are read from: plain text, as it came from outside. */
export interface SettingSources {
  /** The flags that were given, by {@link SettingName}. */
  readonly flags: Readonly<Record<string, string | readonly string[] | undefined>>;
  /** The environment. */
  readonly env: Readonly<Record<string, string | undefined>>;
  /** The name of this host, for `--node-id hostname`. */
  readonly hostname: string;
  /**
   * False for a command that announces no service: what is to be announced is of no use there.
   * @default true
   */
  readonly announces?: boolean;
  /** The defaults that differ from those of the table. */
  readonly defaults?: SettingDefaults | undefined;
}

/** A value, and the name under which its user knows it. */
export interface Given {
  readonly label: string;
  readonly text: string;
  /** From the command line rather than from the environment. */
  readonly flag: boolean;
}

/**
 * All values of a setting: those of its flags, several where it is repeatable, and then its environment
 * variable's.
 * @throws {ConfigError} for a value that is no plain text, see `checkPlain`
 */
export function findAll(sources: SettingSources, name: SettingName): readonly Given[] {
  const all = givenTo(sources, name);
  const { secret, verbatim } = rowOf(name);
  // A flag wins over the variable, whatever that is.
  const used = verbatim === true ? [] : all.filter(({ flag }) => flag || !all[0]?.flag);
  for (const { text, label } of used) checkPlain(text, label, secret && '…');
  return all;
}

function givenTo({ flags, env }: SettingSources, name: SettingName): readonly Given[] {
  const label = environmentName(name);
  const flag = flags[name];
  const texts = flag === undefined ? [] : typeof flag === 'string' ? [flag] : flag;
  const given = texts.map((text) => ({ label: `--${name}`, text, flag: true }));
  const variable = env[label];
  // A command that was itself started by `nodelease run` inherits the id of that run, which must not name a
  // second one.
  if (variable === undefined || (name === 'task-id' && env.NODE_ID_VERSION)) return given;
  if (isServiceLink(label, variable)) return given;
  return [...given, { label, text: variable, flag: false }];
}

/** The value of a setting: the last flag, else its environment variable; undefined where there is neither. */
export function find(sources: SettingSources, name: SettingName): Given | undefined {
  const given = findAll(sources, name);
  return given.findLast(({ flag }) => flag) ?? given[0];
}

/**
 * The value of a setting as its kind reads it; undefined where it is not given.
 *
 * @throws {ConfigError} naming the setting as the user gave it, the value, and what was expected
 */
export function read<Name extends SettingName>(
  sources: SettingSources,
  name: Name,
): SettingValue<Name> | undefined {
  const given = find(sources, name);
  return given && kindOf(name).parse(given.text, given.label);
}

/**
 * The same, or else the default; for settings whose default is a value, and not described in words.
 */
export function readOrDefault<Name extends SettingName>(
  sources: SettingSources,
  name: Name,
): SettingValue<Name> {
  const { text, label } = find(sources, name) ?? {
    text: sources.defaults?.[name] ?? rowOf(name).default ?? '',
    label: `--${name}`,
  };
  return kindOf(name).parse(text, label);
}

/**
 * The first of some settings that is given as a flag. A variable may be there for other programs; a flag is
 * meant for this one.
 */
export function firstFlag(
  sources: SettingSources,
  isOne: (setting: NamedSetting) => boolean,
): Given | undefined {
  const given = SETTINGS.filter(isOne).map(({ name }) => find(sources, name));
  return given.find((each) => each?.flag);
}

/** @throws {ConfigError} that names what was given, and what was expected */
export function refuse(
  { label, text }: { readonly label: string; readonly text: unknown },
  expected: string,
): never {
  throw new ConfigError(label, text, expected);
}
