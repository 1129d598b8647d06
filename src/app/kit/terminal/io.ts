import type { Clock, RandomSource } from '../../../core/base/clock.js';
import type { SignalSource } from './signal-relay.js';

/** The terminal that shows answers, as it is at the moment. */
export interface Screen {
  readonly columns: number;
  readonly rows: number;
  readonly color: boolean;
}

/** Everything outside of a command that it may use. */
export interface Io {
  readonly env: Readonly<Record<string, string | undefined>>;
  /** The name of this host. */
  readonly hostname: string;
  readonly processId: number;
  /** What shows that this runs in a container, as a phrase; undefined where nothing does. */
  readonly containerSign: () => string | undefined;
  /** The options of node itself. */
  readonly execArgv: readonly string[];
  readonly clock: Clock;
  readonly random: RandomSource;
  readonly signals: SignalSource;
  /** Whether standard input is a terminal, so that SIGINT and SIGQUIT come from its keyboard. */
  readonly keyboard: boolean;
  /** Everything that standard input has, to its end. */
  readonly stdin: () => Promise<Buffer>;
  /** Answers. Logs and complaints never go here. */
  readonly stdout: (text: string | Uint8Array) => void;
  /**
   * Resolves when the reader has taken the answer so far: to be awaited between the parts of a long answer.
   * False when the reader has gone.
   */
  readonly taken: () => Promise<boolean>;
  /** Logs and complaints. Never waits for the reader. */
  readonly stderr: (text: string) => void;
  /** Gets the warnings of Node and the libraries, and what they print. */
  readonly onWarning: (listener: (warning: Error) => void) => void;
  /** Of the log on standard error. `plain` and `color`: for people, on a terminal. */
  readonly logFormat: 'json' | 'plain' | 'color';
  /**
   * The terminal; undefined where standard output is a pipe or a file. To be called again for every drawing:
   * terminals are resized.
   */
  readonly screen: () => Screen | undefined;
  /** How to start this program once more: an executable file, and its first arguments. */
  readonly program: readonly [file: string, ...args: string[]];
}
