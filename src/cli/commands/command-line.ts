import { Command, CommanderError } from 'commander';
import { ConfigError } from '../../base/errors.js';
import { withoutSecrets } from '../../base/redaction.js';
import { addDiscoveryCommands } from '../discovery/discovery-commands.js';
import { ExitCode } from '../exit-codes.js';
import type { Io } from '../terminal/io.js';
import { addClusterCommands } from './cluster-commands.js';
import { addCommand, type CommandGroup, type Flags, settleOutput, UsageError } from './command-group.js';
import { addIdCommands } from './id-commands.js';
import { addNodeCommands } from './node-commands.js';

/**
 * Runs one command line. Resolves to the exit code and never rejects for what a user may do wrong: that is one line on standard error
 * and exit code 64.
 *
 * Each command's code is loaded when it is called, and not before: `run` has to start fast.
 *
 * @param args what follows the program's name
 * @param version what `--version` answers
 */
export async function runCommandLine(args: readonly string[], surroundings: Io, version: string): Promise<number> {
  // Complaints may quote what was given, those of the command line's parser too.
  const io = { ...surroundings, stderr: (text: string) => surroundings.stderr(withoutSecrets(text)) };
  let exitCode: number = ExitCode.ok;
  const program = new Command('nodelease')
    .description('Leases a small, unique, fenced node id to each container from a compare-and-swap store.')
    .version(version);
  settleOutput(program, io);
  const group: CommandGroup = {
    parent: program,
    io,
    end: (code) => {
      exitCode = code;
    },
  };

  // Split by hand: whatever stands behind the first -- is the child's, word for word, further -- included.
  const split = args[0] === 'run' ? args.indexOf('--') : -1;
  const [own, childCommand] = split < 0 ? [args, undefined] : [args.slice(0, split), args.slice(split + 1)];

  addNodeCommands(group, childCommand);
  addClusterCommands(group);
  addDiscoveryCommands(group);
  addIdCommands(group);
  addCommand(group, 'demo', 'run a local fleet on the embedded store, to see it work')
    .option('--once', 'end when one take-over has been shown')
    .option('--http <host:port>', 'where the console is (default: 127.0.0.1:7070, or any free port while that is taken)')
    .action(async ({ once = false, http }: Flags<'once'> & { http?: string }) => {
      const { demoCommand } = await import('../demo/demo-command.js');
      group.end(await demoCommand({ once, http }, io));
    });

  try {
    if (own.length === 0) throw new UsageError('no command given: see nodelease --help');
    if (own.length === 1 && own[0] === 'discovery') throw new UsageError('no command given: see nodelease discovery --help');
    await program.parseAsync([...own], { from: 'user' });
    return exitCode;
  } catch (error) {
    if (error instanceof CommanderError) return error.exitCode === 0 ? ExitCode.ok : ExitCode.usage;
    if (!(error instanceof UsageError || error instanceof ConfigError)) throw error;
    io.stderr(`nodelease: ${error.message}\n`);
    return ExitCode.usage;
  }
}
