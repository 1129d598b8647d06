import { Command, CommanderError, Option } from 'commander';
import { environmentName, readSettings, SETTINGS, type SettingName, type Settings, type ZooKeeperSettings } from '../config.js';
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
    .version(version);
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
  if (split < 0) settleOutput(run, io, '; the command to run goes after --, as in "nodelease run -- node server.js"');
  addSettings(run);

  const init = addCommand(program, io, 'init', 'create the settings and all lease objects of a cluster')
    .option('--repair', 'restore damaged lease objects')
    .option('--above-version <n>', 'with --repair: a version that no tenure of a damaged node id has exceeded')
    .action(async ({ repair = false, aboveVersion: text }: { repair?: boolean; aboveVersion?: string }) => {
      if (text !== undefined && !repair) throw new UsageError('--above-version is of use with --repair only');
      const settings = settingsOf(init, io, INIT_SETTINGS);
      checkZooKeeperUse(init, settings);
      if (repair && settings.provider === 'zookeeper') {
        throw new UsageError('--repair is about lease objects in a store: there are none with the provider zookeeper');
      }
      const { initCommand, parseAboveVersion } = await import('./init-command.js');
      exitCode = await initCommand({ repair, aboveVersion: parseAboveVersion(text) }, settings, io);
    });
  addSettings(init, INIT_SETTINGS);

  const status = addCommand(program, io, 'status', 'show who holds which node id')
    .option('--json', 'one JSON object, on one line')
    .option('--watch', 'look again every second, until interrupted')
    .option('--all', 'show all node ids, also where they do not fit the terminal')
    .action(async ({ json = false, watch = false, all = false }: Flags<'json' | 'watch' | 'all'>) => {
      const settings = settingsOf(status, io, LOOK_SETTINGS);
      const { statusCommand } = await import('./status-command.js');
      exitCode = await statusCommand({ json, watch, all }, settings, io);
    });
  addSettings(status, LOOK_SETTINGS);

  const release = addCommand(program, io, 'release', 'take a node id away from its holder')
    .argument('<id>', 'the node id')
    .option('--force', 'do it')
    .action(async (text: string, { force = false }: Flags<'force'>) => {
      const { parseNodeId, releaseCommand, whyForce } = await import('./release-command.js');
      const id = parseNodeId(text);
      const settings = settingsOf(release, io, LOOK_SETTINGS);
      checkZooKeeperUse(release, settings);
      if (!force) throw new UsageError(whyForce(id, settings));
      exitCode = await releaseCommand(id, settings, io);
    });
  addSettings(release, LOOK_SETTINGS);

  const doctor = addCommand(program, io, 'doctor', 'prove that the store keeps its conditions, look for damage, and examine ZooKeeper')
    .option('--json', 'one JSON object, on one line')
    .action(async ({ json = false }: Flags<'json'>) => {
      const settings = settingsOf(doctor, io, LOOK_SETTINGS);
      const { doctorCommand } = await import('./doctor-command.js');
      exitCode = await doctorCommand({ json }, settings, io);
    });
  addSettings(doctor, LOOK_SETTINGS);

  const discovery = addCommand(program, io, 'discovery', 'look into the discovery tree in ZooKeeper');
  const list = addCommand(discovery, io, 'ls', 'show the nodes, services and endpoints that are announced')
    .argument('[path]', 'only what stands there, such as /discovery/nodes')
    .option('--json', 'one JSON object, on one line')
    .action(async (path: string | undefined, { json = false }: Flags<'json'>) => {
      const settings = withZooKeeper(settingsOf(list, io, ZOOKEEPER_SETTINGS));
      const { listDiscoveryCommand } = await import('./discovery-command.js');
      exitCode = await listDiscoveryCommand(path, { json }, settings, io);
    });
  addSettings(list, ZOOKEEPER_SETTINGS);

  const watch = addCommand(discovery, io, 'watch', 'show what is announced, and then every change, until interrupted')
    .option('--json', 'one JSON object for each change, on one line')
    .action(async ({ json = false }: Flags<'json'>) => {
      const settings = withZooKeeper(settingsOf(watch, io, ZOOKEEPER_SETTINGS));
      const { watchDiscoveryCommand } = await import('./discovery-command.js');
      exitCode = await watchDiscoveryCommand({ json }, settings, io);
    });
  addSettings(watch, ZOOKEEPER_SETTINGS);

  addCommand(program, io, 'demo', 'run a local fleet on the embedded store, to see it work')
    .option('--once', 'end when one take-over has been shown')
    .action(async ({ once = false }: Flags<'once'>) => {
      const { demoCommand } = await import('./demo-command.js');
      exitCode = await demoCommand({ once }, io);
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

/** What a command that looks at a store needs to know. */
const STORE_SETTINGS: readonly SettingName[] = ['store', 'endpoint', 'region', 'log-level'];
/** What a command that looks at ZooKeeper needs to know. */
const ZOOKEEPER_SETTINGS: readonly SettingName[] = ['zookeeper', 'zookeeper-auth', 'zookeeper-session-timeout', 'log-level'];
/** What a command needs to know that looks at where the node ids come from, and at ZooKeeper where that is used. */
const LOOK_SETTINGS: readonly SettingName[] = ['provider', ...STORE_SETTINGS, ...ZOOKEEPER_SETTINGS];
const INIT_SETTINGS: readonly SettingName[] = ['nodes', 'duration', 'grace', ...LOOK_SETTINGS];

/** Options without a value, as commander hands them over. */
type Flags<Name extends string> = { readonly [name in Name]?: boolean };

/** The command line as a whole is wrong, rather than one setting. */
class UsageError extends Error {}

/** For the commands that are about nothing else. */
function withZooKeeper(settings: Settings): Settings & { readonly zookeeper: ZooKeeperSettings } {
  const { zookeeper } = settings;
  if (zookeeper !== undefined) return { ...settings, zookeeper };
  throw new UsageError('no ZooKeeper given: expected --zookeeper HOST:PORT[,HOST:PORT]...[/CHROOT], or NODELEASE_ZOOKEEPER');
}

/** For the commands that use ZooKeeper only where it gives out the node ids. Variables may be there for other commands. */
function checkZooKeeperUse(command: Command, { provider }: Settings): void {
  const { zookeeper } = command.opts<{ zookeeper?: string }>();
  if (zookeeper === undefined || provider === 'zookeeper') return;
  throw new ConfigError(
    '--zookeeper',
    zookeeper,
    `--provider zookeeper beside it (nodelease ${command.name()} looks at the store otherwise)`,
  );
}

function addCommand(parent: Command, io: Io, name: string, description: string): Command {
  const command = parent.command(name).description(description).allowExcessArguments(false);
  settleOutput(command, io);
  return command;
}

/** Makes commander throw instead of ending the process, and complain in one line. */
function settleOutput(command: Command, io: Io, hint = ''): void {
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

function addSettings(command: Command, names?: readonly SettingName[]): void {
  for (const { name, argument, description } of SETTINGS) {
    if (names && !names.includes(name)) continue;
    const flags = argument === undefined ? `--${name}` : `--${name} <${argument}>`;
    command.addOption(new Option(flags, `${description} [${environmentName(name)}]`));
  }
}

/** @param names the settings that the command knows; variables of others are none of its business. All of them unless given */
function settingsOf(command: Command, { env: surroundings, hostname }: Io, names?: readonly SettingName[]): Settings {
  const given: Record<string, unknown> = command.opts();
  const flags: Partial<Record<SettingName, string>> = {};
  for (const { name } of SETTINGS) {
    const value = given[new Option(`--${name}`).attributeName()];
    if (typeof value === 'string') flags[name] = value;
    else if (value === true) flags[name] = 'true';
  }
  const env = names ? Object.fromEntries(names.map(environmentName).map((name) => [name, surroundings[name]])) : surroundings;
  return readSettings({ flags, env, hostname });
}
