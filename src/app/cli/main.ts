import { Console } from 'node:console';
import { Writable } from 'node:stream';
import { buffer } from 'node:stream/consumers';
import { isatty } from 'node:tty';
import { fileURLToPath } from 'node:url';
import { setFlagsFromString } from 'node:v8';
import { explain } from '../../core/base/errors.js';
import { exitLost } from '../../core/base/host/exit-lost.js';
import { containerSign, hostName } from '../../core/base/host/facts.js';
import { systemClock, systemRandom } from '../../core/base/system.js';
import { VERSION } from '../../core/base/version.js';
import { STORES } from '../../core/store/stores.js';
import { ExitCode, exitCodeOfSignal, type Screen } from '../kit/io.js';
import { standardErrorWrite } from '../kit/terminal/non-blocking-write.js';
import type { ForwardedSignal, SignalSource } from '../kit/terminal/signal-relay.js';
import { StandardError, StandardOutput } from '../kit/terminal/standard-streams.js';
import { runCommandLine } from './commands/command-line.js';

// The only file that touches the process' arguments, environment and exit.

const STANDARD_INPUT = 0;
const STANDARD_OUTPUT = 1;
const STANDARD_ERROR = 2;
/**
 * How long the exit waits for readers: of the log, and of an answer that was interrupted. In milliseconds.
 * After a loss, only the exit may stop the users of the node id (rule 7).
 */
const READER_TIMEOUT_MS = { lost: 100, other: 1_000 };

// Not asked for before it is needed: node makes a pipe non-blocking when it opens it, and `run` leaves it to
// its child.
function screen(): Screen | undefined {
  if (!isatty(STANDARD_OUTPUT)) return undefined;
  const { columns, rows } = process.stdout;
  return {
    columns: columns || 80,
    rows: rows || 24,
    color: !process.env.NO_COLOR && process.env.TERM !== 'dumb',
  };
}

const stderr = new StandardError(standardErrorWrite, systemClock, (lines) =>
  warn(new Error(`${lines} lines are missing here: the reader of this log was too slow`)),
);

// What Node and the libraries would print by themselves, past the log and without a limit of time. Kept until
// the command has a log.
const early: Error[] = [];
let warn = (warning: Error): void => void early.push(warning);
process.removeAllListeners('warning').on('warning', (warning) => {
  if (!STORES.some(({ muted }) => muted?.includes(warning.name))) warn(warning);
});
const printed = new Writable({
  write(text: Buffer, _, done) {
    warn(new Error(text.toString()));
    done();
  },
});
Object.assign(console, new Console(printed));
// Node itself asks for it, too. As it opens it, it makes a pipe non-blocking for the child, too.
Object.defineProperty(process, 'stderr', { value: printed });

// Whether a signal has arrived that the command takes.
let isInterrupted = false;
const onSignal = (signal: ForwardedSignal) => {
  isInterrupted ||= signal !== 'SIGWINCH';
};
const signals: SignalSource = {
  on: (signal, listener) => process.on(signal, onSignal).on(signal, listener),
  off: (signal, listener) => process.off(signal, onSignal).off(signal, listener),
};

/** What the terminal itself would do at Ctrl-C and Ctrl-\, while it hands on all keys. */
const SIGNAL_KEYS: Readonly<Record<string, NodeJS.Signals>> = { '\x03': 'SIGINT', '\x1c': 'SIGQUIT' };

function onKey(listener: (key: string) => void) {
  const onText = (text: string) => {
    for (const key of text) {
      const signal = SIGNAL_KEYS[key];
      if (signal) process.kill(process.pid, signal);
      else listener(key);
    }
  };
  // A terminal that has gone sends SIGHUP as well.
  const onError = () => undefined;
  process.stdin.setRawMode(true).setEncoding('utf8').on('data', onText).on('error', onError);
  return () => void process.stdin.off('data', onText).pause().setRawMode(false);
}

const output = new StandardOutput(() => process.stdout, systemClock, {
  readerGone: () => stop(exitCodeOfSignal('SIGPIPE')),
  failed: (error) => {
    stderr.write(`nodelease: standard output: ${explain(error)}\n`);
    stop(ExitCode.outputFailed);
  },
});

/** Has a command that is still at work end in order. One with nothing to put in order has no listener. */
function stop(exitCode: number) {
  if (process.listenerCount('SIGTERM') > 0) process.kill(process.pid, 'SIGTERM');
  else void exit(exitCode);
}

/**
 * Runs the command that the arguments name, and ends the process.
 *
 * @param beforeFlags called before flags of V8 change
 */
export async function main(beforeFlags?: () => void): Promise<void> {
  const exitCode = await runCommandLine(
    process.argv.slice(2),
    {
      // A copy: what the SDKs need in it is not for the programs that are started.
      env: { ...process.env },
      hostname: hostName(),
      processId: process.pid,
      containerSign: () => containerSign({ env: process.env, processId: process.pid }),
      execArgv: process.execArgv,
      clock: systemClock,
      random: systemRandom,
      signals,
      keyboard: isatty(STANDARD_INPUT),
      onKey,
      stdin: () => buffer(process.stdin),
      stdout: (text) => output.write(text),
      taken: () => output.taken(),
      written: () => output.written(),
      stderr: (text) => stderr.write(text),
      onWarning: (listener) => {
        warn = listener;
        for (const warning of early.splice(0)) listener(warning);
      },
      logFormat: !isatty(STANDARD_ERROR) ? 'json' : process.env.NO_COLOR ? 'plain' : 'color',
      screen,
      program: [process.execPath, fileURLToPath(new URL('./nodelease.js', import.meta.url))],
      keepMemoryLean: () => {
        beforeFlags?.();
        setFlagsFromString('--optimize-for-size');
        setFlagsFromString('--semi-space-growth-factor=1');
      },
    },
    VERSION,
  );
  // A pipe whose reader is slow takes the rest of a long answer later. After a signal, or a loss, a reader
  // that has stopped reading is not waited for.
  await (isInterrupted || exitCode > 128 || exitCode === ExitCode.leaseLost
    ? Promise.race([output.written(), systemClock.sleep(readerTimeout(exitCode))])
    : output.written());
  // What ended the command for another reason says more.
  await exit(
    output.hasFailed && (exitCode === ExitCode.ok || exitCode > 128) ? ExitCode.outputFailed : exitCode,
  );
}

async function exit(code: number): Promise<never> {
  for (const warning of early) stderr.write(`nodelease: warning: ${explain(warning)}\n`);
  await stderr.taken(readerTimeout(code));
  if (code === ExitCode.leaseLost) exitLost();
  process.exit(code);
}

function readerTimeout(exitCode: number): number {
  return exitCode === ExitCode.leaseLost ? READER_TIMEOUT_MS.lost : READER_TIMEOUT_MS.other;
}

// Stays so where nothing is left to wait for and no exit code has come.
process.exitCode = ExitCode.internal;
