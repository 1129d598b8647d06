import { checkArguments, oneOf, whole } from '../base/arguments.js';
import { ConfigError } from '../base/errors.js';

/**
 * One setting: an option of commands, the environment variable of the same name, and often an option of the
 * library.
 */
export interface Setting {
  readonly kind: SettingKind<unknown>;
  /** Whether the flag may be given several times. */
  readonly repeatable?: true;
  /**
   * What holds where the setting is not given. A value as a user would write it; or, where that depends on
   * other things, words for people.
   */
  readonly default?: string;
  /** The option of `acquire()` with the same meaning. Durations are in milliseconds there. */
  readonly option?: string;
  /** The field of `Settings` that has its value, for a setting that is read by itself. @default `option` */
  readonly field?: string;
  /** The setting without which it is of no use. That may need another one itself. */
  readonly needs?: string;
  /** What the settings that need this one ask for without it. @default another reader sees to that */
  readonly wanted?: string;
  /** Whether it is about leases in a store, and of no use where node ids come from ZooKeeper. */
  readonly storeOnly?: true;
  /** Whether also the help of a command with many options shows it. */
  readonly common?: true;
  /** Whether errors must not show its value. */
  readonly secret?: true;
  /**
   * Whether it may have line breaks, and blanks and quotes at its ends: JSON, or where it is an option of the
   * library, which is the content of the file.
   */
  readonly verbatim?: true | 'option';
  /** What it means, without its range and default. */
  readonly sentence: string;
}

/** Rows of settings, by their names on the command line. */
export type SettingRows = Readonly<Record<string, Setting>>;

const UNITS: Readonly<Record<string, number>> = {
  ms: 1,
  s: 1_000,
  m: 60_000,
  h: 3_600_000,
  d: 86_400_000,
};

/**
 * A whole number in plain digits.
 * @throws {ConfigError} naming the setting `label` for anything else, and outside of the bounds
 */
export function parseInteger(text: string, label: string, min: number, max: number): number {
  const value = /^\d{1,16}$/.test(text) ? Number(text) : Number.NaN;
  if (!(value >= min && value <= max))
    throw new ConfigError(label, text, `a whole number from ${min} to ${max}`);
  return value;
}

/** A setting in milliseconds, exactly, as its user would write it: `15s`, `1.5s`, `90s`, `2h`. */
export function formatSetting(ms: number): string {
  if (ms >= 1_000) {
    const hours = ms / 3_600_000;
    if (Number.isInteger(hours)) return `${hours}h`;
    const minutes = ms / 60_000;
    if (Number.isInteger(minutes) && minutes > 1) return `${minutes}m`;
    return `${ms / 1_000}s`;
  }
  return ms === 0 ? '0s' : `${ms}ms`;
}

/** What the values of a setting are. */
export interface SettingKind<T> {
  /** The placeholder of the value in the help: `url`, `time`; undefined for a switch. */
  readonly argument: string | undefined;
  /** Which values there are, for the help; undefined where the kind itself says it. */
  readonly range?: string | undefined;
  /** All values, where they are a few names. */
  readonly choices?: readonly string[] | undefined;
  /** @throws {ConfigError} that names the label, the text and what was expected */
  parse(text: string, label: string): T;
  /**
   * The same for a value that a program gives. Without it, what uses the value checks it.
   * @throws {ConfigError}
   */
  check?(value: unknown, label: string): void;
}

/** The bounds of a duration in milliseconds, each with the reason for it. */
interface DurationBounds {
  /** @default 0 */
  readonly min?: number;
  readonly minWhy?: string;
  readonly max: number;
  readonly maxWhy?: string;
  /** Whether a program may give more than `max`, `Infinity` included. @default false */
  readonly open?: boolean;
}

/** A time such as `500ms`, `1.5s` or `1h`, in milliseconds. */
export function duration({
  min = 0,
  minWhy,
  max,
  maxWhy,
  open = false,
}: DurationBounds): SettingKind<number> {
  const because = (why: string | undefined) => (why === undefined ? '' : ` (${why})`);
  // The bounds are settings too, and zero often has a special meaning.
  const atLeast = min === 1 ? 'more than 0s' : `at least ${formatSetting(min)}`;
  return {
    argument: 'time',
    range: min > 1 ? `${formatSetting(min)} to ${formatSetting(max)}` : `up to ${formatSetting(max)}`,
    parse: (text, label) => {
      const [, digits, unit = ''] = /^(\d{1,12}(?:\.\d{1,3}(?!ms))?)(ms|s|m|h|d)$/.exec(text) ?? [];
      if (digits === undefined) throw new ConfigError(label, text, 'a time such as 500ms, 15s, 2m or 1h');
      const ms = Math.round(Number(digits) * (UNITS[unit] ?? 1));
      if (ms < min) throw new ConfigError(label, text, `${atLeast}${because(minWhy)}`);
      if (ms > max) throw new ConfigError(label, text, `at most ${formatSetting(max)}${because(maxWhy)}`);
      return ms;
    },
    check: (value, label) => {
      if (typeof value === 'number' && value >= min && (open || value <= max)) return;
      throw new ConfigError(
        label,
        value,
        `a number of milliseconds ${open ? `of at least ${min}` : `from ${min} to ${max}`}`,
      );
    },
  };
}

/** A time of up to a day. */
export const upToOneDay = duration({ max: 86_400_000 });

export function integer(min: number, max: number): SettingKind<number> {
  return {
    argument: 'n',
    range: `${min} to ${max}`,
    parse: (text, label) => parseInteger(text, label, min, max),
    check: (value, label) => checkArguments({ [label]: value }, { [label]: whole(min, max) }),
  };
}

/** One of several names. */
export function choice<Name extends string>(...names: readonly Name[]): SettingKind<Name> {
  const isOne = (value: unknown): value is Name => names.some((name) => name === value);
  const few = names.length === 2;
  return {
    argument: 'name',
    choices: names,
    range: few ? names.join(' or ') : names.join(', ').replace(/, (\w+)$/, ' or $1'),
    parse: (text, label) => {
      if (isOne(text)) return text;
      throw new ConfigError(label, text, few ? names.join(' or ') : `one of ${names.join(', ')}`);
    },
    check: (value, label) => checkArguments({ [label]: value }, { [label]: oneOf(...names) }),
  };
}

/** A flag without a value; the variable is `true` or `false`. */
export const onOff: SettingKind<boolean> = {
  argument: undefined,
  parse: (text, label) => {
    if (text !== 'true' && text !== 'false') throw new ConfigError(label, text, 'true or false');
    return text === 'true';
  },
};

/** A text that has to look like `pattern`. */
export function text(argument: string, pattern: RegExp, expected: string): SettingKind<string> {
  const check = (given: unknown, label: string) => {
    if (typeof given !== 'string' || !pattern.test(given)) throw new ConfigError(label, given, expected);
  };
  return { ...checked(argument, check), check };
}

/** A text that stays as it is once `check` has not thrown. */
export function checked(
  argument: string,
  check: (text: string, label: string) => unknown,
): SettingKind<string> {
  return parsed(argument, (given, label) => {
    check(given, label);
    return given;
  });
}

/** A text that is taken apart. */
export function parsed<T>(argument: string, parse: (text: string, label: string) => T): SettingKind<T> {
  return { argument, parse };
}

/** The path of a file. */
export const filePath = checked('path', (given, label) => {
  if (given === '' || given.includes('\0')) throw new ConfigError(label, given, 'the path of a file');
});
