import { buffer } from 'node:stream/consumers';
import { isatty } from 'node:tty';
import { fileURLToPath } from 'node:url';
import { explain } from '../base/errors.js';
import { containerSign } from '../base/host/container.js';
import { hostName } from '../base/host/facts.js';
import { systemClock, systemRandom } from '../base/system.js';
import { VERSION } from '../base/version.js';
import { runCommandLine } from './commands/command-line.js';
import { ExitCode } from './exit-codes.js';
import type { Screen } from './terminal/io.js';
import { StandardOutput } from './terminal/standard-output.js';

// The only file that touches the process' arguments, environment and exit.

const STANDARD_INPUT = 0;
const STANDARD_OUTPUT = 1;
/** How long the reader of an answer that was interrupted gets for the rest of it, in milliseconds. */
const INTERRUPTED_TIMEOUT_MS = 1_000;

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

const output = new StandardOutput(() => process.stdout, systemClock, {
  // A command that is still at work ends in order, without a complaint.
  readerGone: () => process.kill(process.pid, 'SIGTERM'),
  failed: (error) => {
    process.stderr.write(`nodelease: standard output: ${explain(error)}\n`);
    // A command with nothing to put in order has no listener, and would die of it.
    if (process.listenerCount('SIGTERM') > 0) process.kill(process.pid, 'SIGTERM');
    else process.exit(ExitCode.outputFailed);
  },
});

async function main(): Promise<void> {
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
      signals: process,
      keyboard: isatty(STANDARD_INPUT),
      stdin: () => buffer(process.stdin),
      stdout: (text) => output.write(text),
      taken: () => output.taken(),
      stderr: (text) => process.stderr.write(text),
      onWarning: (listener) =>
        process.removeAllListeners('warning').on('warning', (warning) => {
          // Google's library has looked for a metadata server where there is none: the consequence is
          // reported anyway.
          if (warning.name !== 'MetadataLookupWarning') listener(warning);
        }),
      logFormat: !process.stderr.isTTY ? 'json' : process.env.NO_COLOR ? 'plain' : 'color',
      screen,
      program: [process.execPath, fileURLToPath(new URL('./nodelease.js', import.meta.url))],
    },
    VERSION,
  );
  // A pipe whose reader is slow takes the rest of a long answer later. After a signal, a reader that has
  // stopped reading is not waited for.
  await (exitCode > 128
    ? Promise.race([output.written(), systemClock.sleep(INTERRUPTED_TIMEOUT_MS)])
    : output.written());
  // What ended the command for another reason says more.
  process.exit(
    output.hasFailed && (exitCode === ExitCode.ok || exitCode > 128) ? ExitCode.outputFailed : exitCode,
  );
}

// Stays so where nothing is left to wait for and no exit code has come.
process.exitCode = ExitCode.internal;
void main();
