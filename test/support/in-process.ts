import { systemClock, systemRandom } from '../../src/base/system.js';
import { runCommandLine } from '../../src/cli/commands/command-line.js';
import { capturedIo } from './captured-io.js';

/** How a command line ended, and what it said. */
export interface CommandAnswer {
  readonly code: number | null;
  readonly answer: string;
  readonly complaints: string;
}

/** What a command line is given beside its words. */
export interface InProcessOptions {
  readonly env?: Readonly<Record<string, string>>;
  /** All that is on standard input. @default nothing */
  readonly stdin?: string;
}

/**
 * Runs a command line to its end in this process, on real time: the same code as {@link runCli}'s, without the start of a process. For commands that
 * have no child, no log, and no answer that is read while they run.
 */
export async function runInProcess(args: readonly string[], { env = {}, stdin = '' }: InProcessOptions = {}): Promise<CommandAnswer> {
  const io = { ...capturedIo(), clock: systemClock, random: systemRandom, env, stdin: async () => Buffer.from(stdin) };
  const code = await runCommandLine(args, io, '0.0.0');
  return { code, answer: io.answer(), complaints: io.complaints() };
}
