import type { Command } from 'commander';
import { ConfigError } from '../../base/errors.js';
import type { Settings, ZooKeeperSettings } from '../../settings/settings.js';
import type { Io } from '../terminal/io.js';

/** Where commands are added, and what they have in common. */
export interface CommandGroup {
  readonly parent: Command;
  readonly io: Io;
  /** Takes the exit code of the command that was called. */
  readonly end: (exitCode: number) => void;
}

/** Options without a value, as commander hands them over. */
export type Flags<Name extends string> = { readonly [name in Name]?: boolean };

/** The settings of a command that cannot do without ZooKeeper. */
export type ZooKeeperCommandSettings = Settings & { readonly zookeeper: ZooKeeperSettings };

/** The command line as a whole is wrong, rather than one setting. */
export class UsageError extends Error {}

/** Adds a command that takes no arguments but those that are declared. */
export function addCommand({ parent, io }: CommandGroup, name: string, description: string): Command {
  const command = parent.command(name).description(description).allowExcessArguments(false);
  settleOutput(command, io);
  return command;
}

/** Makes commander throw instead of ending the process, and complain in one line. */
export function settleOutput(command: Command, io: Io, hint = ''): void {
  command
    .exitOverride()
    .showSuggestionAfterError()
    .configureOutput({
      writeOut: io.stdout,
      writeErr: io.stderr,
      outputError: (text, write) => {
        // A suggestion stands on a line of its own, a sentence ends in a full stop: neither suits one line that may go on.
        const line = text
          .replace(/^error: /, '')
          .trim()
          .replace(/\s+/g, ' ')
          .replace(/\.$/, '');
        write(`nodelease: ${line}${hint}\n`);
      },
    });
}

/**
 * For the commands that are about nothing else.
 *
 * @throws {UsageError} when no ZooKeeper is given
 */
export function withZooKeeper(settings: Settings): ZooKeeperCommandSettings {
  const { zookeeper } = settings;
  if (zookeeper !== undefined) return { ...settings, zookeeper };
  throw new UsageError('no ZooKeeper given: expected --zookeeper HOST:PORT[,HOST:PORT]...[/CHROOT], or NODELEASE_ZOOKEEPER');
}

/**
 * For the commands that use ZooKeeper only where it gives out the node ids. Variables may be there for other commands.
 *
 * @throws {ConfigError} when ZooKeeper was named to this very command, for nothing
 */
export function checkZooKeeperUse(command: Command, { provider }: Settings): void {
  const { zookeeper } = command.opts<{ zookeeper?: string }>();
  if (zookeeper === undefined || provider === 'zookeeper') return;
  throw new ConfigError(
    '--zookeeper',
    zookeeper,
    `--provider zookeeper beside it (nodelease ${command.name()} looks at the store otherwise)`,
  );
}
