import type { Clock, RandomSource } from '../clock.js';
import type { LoggerOptions } from './logger.js';
import type { SignalSource } from './signal-relay.js';

/** A terminal that answers are shown on, as it is right now. */
export interface Screen {
  readonly columns: number;
  readonly rows: number;
  readonly color: boolean;
}

/** Everything outside of a command that it may touch. */
export interface Io {
  readonly env: Readonly<Record<string, string | undefined>>;
  /** The name of this host. */
  readonly hostname: string;
  readonly processId: number;
  /** The options that node itself was started with. */
  readonly execArgv: readonly string[];
  readonly clock: Clock;
  readonly random: RandomSource;
  readonly signals: SignalSource;
  /** True when standard input is a terminal, so that SIGINT and SIGQUIT come from its keyboard. */
  readonly keyboard: boolean;
  /** Answers. Logs and complaints never go here. */
  readonly stdout: (text: string) => void;
  /**
   * Resolves when the reader has taken what was answered so far, and whoever waits for the event loop has had a turn: to be awaited between
   * the parts of an answer without end. False when nobody reads any more.
   */
  readonly taken: () => Promise<boolean>;
  readonly stderr: (text: string) => void;
  /** Takes over what Node and the libraries warn of, which would be printed otherwise. */
  readonly onWarning: (listener: (warning: Error) => void) => void;
  readonly logFormat: LoggerOptions['format'];
  /** The terminal that standard output is; undefined where it is a pipe or a file. Ask again for every drawing: terminals are resized. */
  readonly screen: () => Screen | undefined;
  /** How to start this program once more: an executable file, and its first arguments. */
  readonly program: readonly [file: string, ...args: string[]];
}
