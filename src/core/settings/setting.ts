import type { SettingKind } from './values.js';

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
