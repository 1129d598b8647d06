import { LEASE_SETTINGS } from '../../core/lease/lease-settings.js';
import type { SettingKind } from '../../core/settings/setting.js';
import { STORE_SETTINGS } from '../../core/store/store-settings.js';
import { ZOOKEEPER_TLS_SETTINGS } from '../../zookeeper/client/tls-settings.js';
import { HTTP_SETTINGS } from '../http/http-settings.js';
import type { Settings } from '../settings/settings.js';
import {
  environmentName,
  type NamedSetting,
  namesOf,
  SETTINGS,
  type SettingDefaults,
  type SettingName,
} from '../settings/settings-table.js';
import type { Call, WithZooKeeper } from './call.js';

/**
 * Resolves to the exit code; a failure has been reported on standard error by then.
 *
 * @param args the values of the row's `arguments`, without the optional ones that were left out, and the
 * command after `--`
 * @throws {ConfigError} or {UsageError} when it is called wrongly, or a setting turns out to be unusable
 */
type Command<Needed extends Settings = Settings> = (
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
type GroupRow = Pick<CommandRow, 'name' | 'description' | 'door'>;

/** A row of the table of commands. */
export type TableRow = CommandRow | GroupRow;

/** The headings of the commands in the help, in its order: the four doors of the README come first. */
export const DOORS = [
  'A node id for each task',
  'One instance at a time',
  'Shards',
  'Unique ids',
  'Look and operate',
  'Try it, and learn',
  'With ZooKeeper',
] as const;

interface CommandFacts {
  readonly name: string;
  /** Its heading in the help; a command of a group has none. */
  readonly door?: (typeof DOORS)[number];
  readonly description: string;
  readonly arguments?: readonly (readonly [name: string, description: string])[];
  /** Calls of it, without the program's name. */
  readonly examples: readonly [string, string];
  /**
   * Whether it runs another command: the words after the first `--` are that one's, further `--` included.
   * `optional`: not with each of its options.
   */
  readonly runs?: true | 'optional';
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

/** An option of a command, with the setting that it stands for. */
export type SettingOption = readonly [
  flags: string,
  help: string,
  more?: OptionRow[2] & { readonly setting?: NamedSetting },
];

/** All options of a command: its own, and its settings in the order of their table. */
export function optionsOf({ options = [], settings, defaults = {} }: CommandRow): SettingOption[] {
  const rows = SETTINGS.filter(({ name }) => settings.includes(name));
  const others = rows.map((setting): SettingOption => {
    const { name, sentence, kind, default: usual, repeatable } = setting;
    const standard = defaults[name] ?? usual;
    const facts = [kind.range, standard && `default: ${standard}`]
      .filter((fact) => fact !== undefined)
      .join('; ');
    const help = `${sentence}${facts && ` (${facts})`} [${environmentName(name)}]`;
    const flag = kind.argument === undefined ? `--${name}` : `--${name} <${kind.argument}>`;
    return [flag, help, { setting, ...(repeatable && { repeatable }) }];
  });
  return [...options, ...others];
}

/** The examples of a command, or of all, below its help. */
export function examplesOf({ examples, zookeeper }: Pick<CommandRow, 'examples' | 'zookeeper'>): string {
  const heading =
    zookeeper === 'required' ? 'Examples, with NODELEASE_ZOOKEEPER=zk1:2181,zk2:2181' : 'Examples';
  return [`\n${heading}:`, ...examples.map((example) => `  $ nodelease ${example}`)].join('\n');
}

type Names = readonly SettingName[];

// Which commands have a setting: the rows name these. The groups of the settings' table say the rest.
const OF_LOG: Names = ['log-level', 'log-format'];
export const OF_STORE: Names = [...namesOf(STORE_SETTINGS), ...OF_LOG];
export const OF_ZOOKEEPER: Names = [
  'zookeeper',
  'zookeeper-auth',
  'zookeeper-session-timeout',
  ...namesOf(ZOOKEEPER_TLS_SETTINGS),
  ...OF_LOG,
];
/** Of all that is about node ids. */
export const OF_NODE_IDS: Names = [...OF_STORE, ...OF_ZOOKEEPER, 'provider'];
/** Of the commands that may create a cluster. */
export const CREATING: Names = [...OF_NODE_IDS, 'cluster-name', 'nodes', 'duration', 'grace'];
/** Of the commands that hold a node id for other processes. */
const OF_HOLDING: Names = ['on-retire', 'ecs-protect', 'node-id', 'zookeeper-required', 'ready-timeout'];
/** Of the commands that acquire a node id. */
export const ACQUIRING: Names = [
  ...OF_NODE_IDS,
  ...namesOf(LEASE_SETTINGS).filter((name) => !OF_HOLDING.includes(name)),
];
/** Of the commands that have a console. */
export const OF_CONSOLE: Names = [...namesOf(HTTP_SETTINGS), 'config-root', 'service-base-path'];
export const HOLDING: Names = [...ACQUIRING, ...OF_CONSOLE, ...OF_HOLDING];
/** Of services. */
export const OF_SERVICES: Names = [...OF_ZOOKEEPER, 'service-base-path'];
