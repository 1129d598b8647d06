import { Command, CommanderError } from 'commander';
import type { Settings, ZooKeeperSettings } from '../config.js';
import { ConfigError } from '../errors.js';
import {
  addSettings,
  ID_SETTINGS,
  INIT_SETTINGS,
  LOOK_SETTINGS,
  RUN_SETTINGS,
  SERVE_SETTINGS,
  SERVICE_SETTINGS,
  settingsOf,
  ZOOKEEPER_SETTINGS,
} from './command-settings.js';
import type { DecodeOptions } from './decode-command.js';
import type { DiscoveryServeOptions } from './discovery-serve-command.js';
import { ExitCode } from './exit-codes.js';
import type { IdOptions } from './id-options.js';
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
      const settings = settingsOf(run, io, RUN_SETTINGS, true);
      const [file, ...childArgs] = childCommand;
      if (file === undefined) throw new UsageError('no command given: expected one after --, as in "nodelease run -- node server.js"');
      const { runCommand } = await import('./run-command.js');
      exitCode = await runCommand([file, ...childArgs], settings, io);
    });
  if (split < 0) settleOutput(run, io, '; the command to run goes after --, as in "nodelease run -- node server.js"');
  addSettings(run, RUN_SETTINGS);

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

  const scale = addCommand(program, io, 'scale', 'give the cluster more node ids, with running tasks on it')
    .argument('<n>', 'how many node ids there are to be')
    .option(
      '--wait-timeout <time>',
      'how long to wait for the tasks to make wider unique ids, where those are needed, up to 24h (default: 60s)',
    )
    .action(async (text: string, { waitTimeout }: { waitTimeout?: string }) => {
      const { parseSize, parseWaitTimeout, scaleCommand } = await import('./scale-command.js');
      const options = { size: parseSize(text), waitTimeoutMs: parseWaitTimeout(waitTimeout) };
      const settings = settingsOf(scale, io, LOOK_SETTINGS);
      checkZooKeeperUse(scale, settings);
      if (settings.provider === 'zookeeper') {
        throw new UsageError('scale is about lease objects in a store: with the provider zookeeper node ids grow in number by themselves');
      }
      exitCode = await scaleCommand(options, settings, io);
    });
  addSettings(scale, LOOK_SETTINGS);

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
  const list = addCommand(discovery, io, 'ls', 'show the announced nodes, services and endpoints')
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

  const services = addCommand(discovery, io, 'services', 'show the services that Curator and Spring Cloud know of, and their instances')
    .argument('[name]', 'only this service')
    .option('--json', 'one JSON object, on one line')
    .action(async (name: string | undefined, { json = false }: Flags<'json'>) => {
      const settings = withZooKeeper(settingsOf(services, io, SERVICE_SETTINGS));
      const { listServicesCommand } = await import('./discovery-services-command.js');
      exitCode = await listServicesCommand(name, { json }, settings, io);
    });
  addSettings(services, SERVICE_SETTINGS);

  const resolve = addCommand(discovery, io, 'resolve', 'print the URL of one instance of a service, as the strategy picks it')
    .argument('<name>', 'the service, or NAME[:KEY] of an endpoint')
    .option('--json', 'the whole instance, as one JSON object on one line')
    .option('--kind <kind>', 'what the name stands for: service, or endpoint for one that nodelease run --endpoint announces', 'service')
    .option('--strategy <name>', 'round-robin, random, sticky, weighted or least-recently-failed', 'random')
    .action(async (name: string, { json = false, kind, strategy }: Flags<'json'> & { kind: string; strategy: string }) => {
      const settings = withZooKeeper(settingsOf(resolve, io, SERVICE_SETTINGS));
      const { resolveDiscoveryCommand } = await import('./discovery-resolve-command.js');
      exitCode = await resolveDiscoveryCommand({ name, kind, strategy, json }, settings, io);
    });
  addSettings(resolve, SERVICE_SETTINGS);

  const serve = addCommand(discovery, io, 'serve', 'answer over HTTP who offers which service, for programs without ZooKeeper')
    .option('--read-only', 'refuse to register and unregister instances')
    .option(
      '--bearer-token-file <path>',
      'who registers and unregisters must send the token in this file; needed beyond loopback, or --read-only',
    )
    .option('--static-timeout <time>', 'unregister STATIC instances that nobody has written for so long, 1s to 720h (default: never)')
    .option(
      '--strategy <name>',
      'how /v1/anyservice chooses: round-robin, random, sticky, weighted or least-recently-failed (default: round-robin)',
    )
    .action(async (options: DiscoveryServeOptions) => {
      const settings = withZooKeeper(settingsOf(serve, io, SERVE_SETTINGS));
      const { discoveryServeCommand } = await import('./discovery-serve-command.js');
      exitCode = await discoveryServeCommand(options, settings, io);
    });
  addSettings(serve, SERVE_SETTINGS);

  const id = addCommand(program, io, 'id', 'print unique 64-bit ids: acquires a node id, makes them with it, and releases it')
    .option('-n, --count <k>', 'how many, 1 to 1000000000, one on a line', '1')
    .option('--format <name>', 'decimal, base32 (13 digits) or hex (16 digits)', 'decimal')
    .option('--layout <name>', 'cluster16, with as many bits for a node id as the cluster has, or snowflake (41/10/12)', 'cluster16')
    .option('--epoch <ms>', 'with --layout snowflake: what the time counts from, in milliseconds since 1970 (default: 1288834974657)')
    .addHelpText('after', '\nOnly warnings are logged unless a log level is given. A fixed node id (NODELEASE_NODE_ID) is of no use here.')
    .action(async (options: IdOptions) => {
      const { readIdOptions } = await import('./id-options.js');
      const wanted = readIdOptions(options, io.env);
      const settings = settingsOf(id, io, ID_SETTINGS);
      checkZooKeeperUse(id, settings);
      const { idCommand } = await import('./id-command.js');
      exitCode = await idCommand(wanted, settings, io);
    });
  addSettings(id, ID_SETTINGS);

  addCommand(program, io, 'decode', 'take a unique id apart: its time, its node, its place in the sequence')
    .argument('<id>', 'the id: decimal, 13 base-32 digits, or 16 hex digits')
    .option('--width <bits>', 'how many bits a node id had when the id was made, 8 to 16: nodelease status tells how many it has now')
    .option('--layout <name>', 'cluster16, or snowflake (default: cluster16)')
    .option('--epoch <ms>', 'with --layout snowflake: what the time counts from, in milliseconds since 1970 (default: 1288834974657)')
    .option('--json', 'one JSON object, on one line')
    .action(async (text: string, options: DecodeOptions) => {
      const { decodeCommand } = await import('./decode-command.js');
      exitCode = decodeCommand(text, options, io);
    });

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
