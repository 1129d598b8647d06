import { Command, CommanderError, Option } from 'commander';
import { environmentName, readSettings, SETTINGS, type SettingName, type Settings } from '../config.js';
import { ConfigError } from '../errors.js';
import { ExitCode } from './exit-codes.js';
import type { Io } from './io.js';

/**
 * Runs one command line. Resolves to the exit code and never rejects for what a user may do wrong: that is one line on standard error
 * and exit code 64.
 *
 * Each command's code is loaded when it is called, and not before: `run` has to start fast.
 *
 * @param args what follows the program's name
 * @param version what `--version` answers
 */
export async function runCommandLine(args: readonly string[], io: Io, version: string): Promise<number> {
  let exitCode: number = ExitCode.ok;
  const program = new Command('nodelease')
    .description('Leases a small, unique, fenced node id to each container from a compare-and-swap store.')
    .version(version)
    .helpCommand(false);
  settleOutput(program, io);

  // Split by hand: whatever stands behind the first -- is the child's, word for word, further -- included.
  const split = args[0] === 'run' ? args.indexOf('--') : -1;
  const [own, childCommand] = split < 0 ? [args, []] : [args.slice(0, split), args.slice(split + 1)];

  const run = addCommand(program, io, 'run', 'acquire a node id, run a command with it, release it when the command has ended')
    .usage('[options] -- command [argument...]')
    .action(async () => {
      const settings = settingsOf(run, io);
      const [file, ...childArgs] = childCommand;
      if (file === undefined) throw new UsageError('no command given: expected one after --, as in "nodelease run -- node server.js"');
      const { runCommand } = await import('./run-command.js');
      exitCode = await runCommand([file, ...childArgs], settings, io);
    });
  addSettings(run);

  try {
    if (own.length === 0) throw new UsageError('no command given: see nodelease --help');
    await program.parseAsync([...own], { from: 'user' });
    return exitCode;
  } catch (error) {
    if (error instanceof CommanderError) return error.exitCode === 0 ? ExitCode.ok : ExitCode.usage;
    if (!(error instanceof UsageError || error instanceof ConfigError)) throw error;
    io.stderr(`nodelease: ${error.message}\n`);
    return ExitCode.usage;
  }
}

/** The command line as a whole is wrong, rather than one setting. */
class UsageError extends Error {}

function addCommand(program: Command, io: Io, name: string, description: string): Command {
  const command = program.command(name).description(description).allowExcessArguments(false);
  settleOutput(command, io);
  return command;
}

/** Makes commander throw instead of ending the process, and complain in one line. */
function settleOutput(command: Command, io: Io): void {
  command
    .exitOverride()
    .showSuggestionAfterError(false)
    .configureOutput({
      writeOut: io.stdout,
      writeErr: io.stderr,
      outputError: (text, write) => write(`nodelease: ${text.replace(/^error: /, '')}`),
    });
}

function addSettings(command: Command): void {
  for (const { name, argument, description } of SETTINGS) {
    command.addOption(new Option(`--${name} <${argument}>`, `${description} [${environmentName(name)}]`));
  }
}

function settingsOf(command: Command, { env, hostname }: Io): Settings {
  const given: Record<string, unknown> = command.opts();
  const flags: Partial<Record<SettingName, string>> = {};
  for (const { name } of SETTINGS) {
    const value = given[new Option(`--${name}`).attributeName()];
    if (typeof value === 'string') flags[name] = value;
  }
  return readSettings({ flags, env, hostname });
}
