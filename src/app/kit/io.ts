import { constants } from 'node:os';
import type { Clock, RandomSource } from '../../core/base/clock.js';
import { NodeLeaseError, type NodeLeaseErrorCode } from '../../core/base/errors.js';
import type { SignalSource } from './terminal/signal-relay.js';

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
  /** Hands on each key of that terminal, which then shows none, until the returned function is called. */
  readonly onKey: (listener: (key: string) => void) => () => void;
  /** Everything that standard input has, to its end. */
  readonly stdin: () => Promise<Buffer>;
  /** Answers. Logs and complaints never go here. */
  readonly stdout: (text: string | Uint8Array) => void;
  /**
   * Resolves when the reader has taken the answer so far: to be awaited between the parts of a long answer.
   * False when the reader has gone.
   */
  readonly taken: () => Promise<boolean>;
  /** Resolves when the reader has taken the answer so far, or cannot. */
  readonly written: () => Promise<void>;
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
  /** Has V8 prefer a small heap to a fast one: for a process that does next to nothing, and runs with every task. */
  readonly keepMemoryLean: () => void;
}

/** What the command line's own exit codes mean; any other one is the child's. */
export const ExitCode = {
  ok: 0,
  /** What was asked for is not there, or not as expected. */
  nothing: 1,
  /** The command was called wrongly. */
  usage: 64,
  /** The store, or ZooKeeper or a data directory where it is asked for, cannot be used. */
  storeUnusable: 69,
  /** A fault in nodelease itself. */
  internal: 70,
  /** The answer could not be written to standard output, by another fault than that its reader has gone. */
  outputFailed: 74,
  /** No node id became free, or what else was waited for did not happen, in time. */
  acquireTimeout: 75,
  /** The lease, or what protects it, was lost: the child has been stopped. */
  leaseLost: 76,
} as const;

/** The command line as a whole is wrong, rather than one setting. */
export class UsageError extends Error {
  readonly code = 'USAGE';
}

/** What ends a command, as its last line on standard error says. */
export type FailureCode =
  | NodeLeaseErrorCode
  | 'USAGE'
  | 'COMMAND_NOT_FOUND'
  | 'COMMAND_NOT_EXECUTABLE'
  | 'INTERNAL';

/** The exit code of each failure. */
export const EXIT_CODES: Readonly<Record<FailureCode, number>> = {
  USAGE: ExitCode.usage,
  CONFIG_INVALID: ExitCode.usage,
  CONFIG_SCHEMA: ExitCode.usage,
  NO_INSTANCE: ExitCode.nothing,
  CONFIG_CONFLICT: ExitCode.nothing,
  CONFIG_HISTORY: ExitCode.nothing,
  STORE_UNREACHABLE: ExitCode.storeUnusable,
  STORE_UNAVAILABLE: ExitCode.storeUnusable,
  STORE_DENIED: ExitCode.storeUnusable,
  STORE_MISSING: ExitCode.storeUnusable,
  STORE_UNSUPPORTED: ExitCode.storeUnusable,
  STORE_REJECTED: ExitCode.storeUnusable,
  STORE_UNSAFE: ExitCode.storeUnusable,
  CLUSTER_MISSING: ExitCode.storeUnusable,
  CLUSTER_DAMAGED: ExitCode.storeUnusable,
  CLUSTER_FOREIGN: ExitCode.storeUnusable,
  LEASE_UNREADABLE: ExitCode.storeUnusable,
  ZOOKEEPER_FAILED: ExitCode.storeUnusable,
  RECIPE_FAILED: ExitCode.storeUnusable,
  SHARED_DATA_FAILED: ExitCode.storeUnusable,
  DATA_DIR_FAILED: ExitCode.storeUnusable,
  CLUSTER_CHANGED: ExitCode.acquireTimeout,
  ACQUIRE_TIMEOUT: ExitCode.acquireTimeout,
  WAIT_TIMEOUT: ExitCode.acquireTimeout,
  IDS_EXHAUSTED: ExitCode.acquireTimeout,
  LEASE_LOST: ExitCode.leaseLost,
  LOCK_LOST: ExitCode.leaseLost,
  COMMAND_NOT_EXECUTABLE: 126,
  COMMAND_NOT_FOUND: 127,
  // Only the command itself can have done that, too early.
  LEASE_RELEASED: ExitCode.internal,
  LOCK_RELEASED: ExitCode.internal,
  LEASE_RETIRING: ExitCode.internal,
  INTERNAL: ExitCode.internal,
};

export function failureCode(error: unknown): FailureCode {
  return error instanceof NodeLeaseError ? error.code : 'INTERNAL';
}

/** The exit code of a process that a signal ended, as shells report it: 143 for SIGTERM. */
export function exitCodeOfSignal(signal: NodeJS.Signals): number {
  return 128 + constants.signals[signal];
}

/** The exit code of a command that runs until a signal ends it: success where that is SIGINT or SIGTERM. */
export function exitCodeOfStop(signal: NodeJS.Signals): number {
  return signal === 'SIGINT' || signal === 'SIGTERM' ? ExitCode.ok : exitCodeOfSignal(signal);
}
