import { vi } from 'vitest';
import { runCommandLine } from '../../src/app/cli/commands/command-line.js';
import { systemClock, systemRandom } from '../../src/core/base/system.js';
import { capturedIo } from './captured-io.js';

/** How a command line ended, and what it said. */
export interface CommandEnd {
  readonly code: number;
  readonly answer: string;
  readonly complaints: string;
}

/** What a command line is given in addition to its words. */
export interface InProcessOptions {
  /**
   * Its variables. Clients of stores, which read those of the process, see them until `vi.unstubAllEnvs()`:
   * for `afterEach`.
   */
  readonly env?: Readonly<Record<string, string>>;
  /** All that is on standard input. @default nothing */
  readonly stdin?: string;
}

/**
 * Runs a command line to its end in this process, in real time: the code that {@link runCli} runs, without
 * the start of a process, which takes longer than most commands. For commands that have no child, and no
 * answer that is read while they run. A log goes to the standard error of this process.
 */
export async function runInProcess(
  args: readonly string[],
  { env = {}, stdin = '' }: InProcessOptions = {},
): Promise<CommandEnd> {
  for (const [name, value] of Object.entries(env)) vi.stubEnv(name, value);
  const io = {
    ...capturedIo(),
    clock: systemClock,
    random: systemRandom,
    env,
    stdin: async () => Buffer.from(stdin),
  };
  const code = await runCommandLine(args, io, '0.0.0');
  return { code, answer: io.answer(), complaints: io.complaints() };
}
