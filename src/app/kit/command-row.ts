import type { SettingKind } from '../../core/settings/values.js';
import type { Settings } from '../settings/settings.js';
import type { SettingDefaults, SettingName } from '../settings/settings-table.js';
import type { Call, WithZooKeeper } from './call.js';
import { OF_ZOOKEEPER } from './command-settings.js';

/**
 * Resolves to the exit code; a failure has been reported on standard error by then.
 *
 * @param args the values of the row's `arguments`, without the optional ones that were left out, and the
 * command after `--`
 * @throws {ConfigError} or {UsageError} when it is called wrongly, or a setting turns out to be unusable
 */
export type Command<Needed extends Settings = Settings> = (
  // The row declares the options of its own command: no other function sees them.
  call: Call<never, Needed>,
  ...args: string[]
) => number | Promise<number>;

/** One command: what its help says, and how to load its code, which is done by a call: `run` starts fast. */
export type CommandRow = CommandFacts &
  /** It works on nothing else. */
  (
    | { readonly zookeeper: 'required'; readonly load: () => Promise<Command<WithZooKeeper>> }
    /** It uses ZooKeeper only where that gives out the node ids. @default where ZooKeeper is given */
    | { readonly zookeeper?: 'as-provider'; readonly load: () => Promise<Command> }
  );

/** A word that only holds other commands, and what its help says. */
export type GroupRow = Pick<CommandRow, 'name' | 'description'>;

interface CommandFacts {
  readonly name: string;
  readonly description: string;
  readonly arguments?: readonly (readonly [name: string, description: string])[];
  /** Calls of it, without the program's name. */
  readonly examples: readonly [string, string];
  /**
   * Whether it runs another command: the words after the first `--` are that one's, further `--` included.
   */
  readonly runs?: true;
  /** Its own options, and settings that mean something else here. */
  readonly options?: readonly OptionRow[];
  readonly settings: readonly SettingName[];
  /** The defaults of settings that differ here. */
  readonly defaults?: SettingDefaults;
  /** The options that are about a store: of no use where ZooKeeper gives out the node ids. */
  readonly storeOnly?: readonly string[];
}

/**
 * An option of a command; `kind` reads its value, which the command gets as a text otherwise; `repeatable`
 * collects the values of all its occurrences, `own`: it is no setting, though one has its name, `verbatim`: its
 * values are not checked for line breaks, and blanks and quotes at their ends.
 */
export type OptionRow = readonly [
  flags: string,
  help: string,
  more?: {
    readonly kind?: SettingKind<unknown>;
    readonly default?: string;
    readonly repeatable?: true;
    readonly own?: true;
    readonly verbatim?: true;
  },
];

export const JSON_LINE: OptionRow = ['--json', 'one JSON object, on one line'];
/** Of the commands that show changes. */
export const JSON_CHANGES: OptionRow = ['--json', 'one JSON object for each change, on one line'];

/**
 * How to make the rows of a group whose commands all need ZooKeeper.
 *
 * @param shared the options that all of them have, before each one's own
 * @param facts what else they have in common
 */
export function zooKeeperRows(
  group: string,
  shared: readonly OptionRow[],
  facts: Partial<Pick<CommandRow, 'settings' | 'defaults'>> = {},
) {
  return (
    name: string,
    description: string,
    examples: CommandRow['examples'],
    args: CommandRow['arguments'] & {},
    options: readonly OptionRow[],
    load: () => Promise<Command<WithZooKeeper>>,
  ): CommandRow => ({
    name: `${group} ${name}`,
    description,
    arguments: args,
    examples,
    options: [...shared, ...options],
    settings: OF_ZOOKEEPER,
    zookeeper: 'required',
    load,
    ...facts,
  });
}
