import type { Settings } from '../../settings/settings.js';
import type { Io } from '../terminal/io.js';

/**
 * One command: what its help says, and the code that it calls, which is loaded then and not before: `run` has
 * to start fast.
 */
export interface CommandRow {
  readonly name: string;
  readonly description: string;
  readonly arguments?: readonly (readonly [name: string, description: string])[];
  /**
   * A call of it, for a command that runs another one. What stands behind the first `--` is that one's, word
   * for word, further `--` included.
   */
  readonly example?: string;
  /** Options of its own, and settings that mean something else here. */
  readonly options?: readonly OptionRow[];
  /**
   * `required`: it works on nothing else. `as-provider`: it uses ZooKeeper only where that gives out the node
   * ids.
   * @default where it is given
   */
  readonly zookeeper?: 'required' | 'as-provider';
  /** The options that are about a store: of no use where ZooKeeper gives out the node ids. */
  readonly storeOnly?: readonly string[];
  /**
   * Resolves to the exit code; a failure has been reported on standard error by then.
   *
   * @param options as they stand on the command line
   * @param args the values of `arguments`, undefined for one that was left out, and the command after `--`
   * @throws {ConfigError} or {UsageError} when it is called wrongly, or a setting turns out to be unusable
   */
  run(options: object, settings: Settings, io: Io, ...args: readonly string[]): Promise<number>;
}

/**
 * An option of a command; `repeatable` collects the values of all its occurrences, `own`: it is no setting,
 * though one has its name.
 */
export type OptionRow = readonly [
  flags: string,
  help: string,
  more?: { readonly default?: string; readonly repeatable?: true; readonly own?: true },
];

export const JSON_LINE: OptionRow = ['--json', 'one JSON object, on one line'];
/** Of the commands that wait for others. */
export const WAITING: readonly OptionRow[] = [
  ['--try', 'do not wait for others: exit with 75 instead'],
  ['--timeout <time>', 'how long to wait, up to 8760h (default: without limit)'],
];
/** Of the commands that run another one while they hold something. */
export const HOLDING: readonly OptionRow[] = [
  ...WAITING,
  ['--restart', 'after a loss: acquire it again, and start the command again'],
];
