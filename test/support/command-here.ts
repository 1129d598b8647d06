import { vi } from 'vitest';
import { systemClock, systemRandom } from '../../src/base/system.js';
import { runCommandLine } from '../../src/cli/commands/command-line.js';
import { capturedIo } from './captured-io.js';

/** How a command has ended, and what it said. */
export interface CommandEnd {
  readonly code: number;
  readonly answer: string;
  readonly complaints: string;
}

/**
 * Runs a command line in this process, in real time: all that the command itself decides, without the start of a process, which takes far longer
 * than most commands. A log goes to the standard error of this process. The clients of stores see the variables, too, until `vi.unstubAllEnvs()`: for `afterEach`.
 */
export async function commandHere(args: readonly string[], env: Readonly<Record<string, string>> = {}): Promise<CommandEnd> {
  for (const [name, value] of Object.entries(env)) vi.stubEnv(name, value);
  const io = { ...capturedIo(), env, clock: systemClock, random: systemRandom };
  const code = await runCommandLine(args, io, '0.0.0');
  return { code, answer: io.answer(), complaints: io.complaints() };
}
