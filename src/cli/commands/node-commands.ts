import type { Command } from 'commander';
import { ConfigError } from '../../base/errors.js';
import type { Settings } from '../../settings/settings.js';
import { addCommand, type CommandGroup, settleOutput, UsageError } from './command-group.js';
import { addSettings, settingsOf } from './command-settings.js';
import type { HealthOptions } from './health-command.js';
import type { ServeOptions } from './serve-command.js';

/** Adds the commands that hold a node id for others, and the one that asks them how they are: `run`, `serve`, `health`. */
export function addNodeCommands(group: CommandGroup, childCommand: readonly string[] | undefined): void {
  addRun(group, childCommand);
  addServe(group);
  addHealth(group);
}

/** @param childCommand what stands behind the first `--`; undefined where there is none */
function addRun(group: CommandGroup, childCommand: readonly string[] | undefined): void {
  const { io, end } = group;
  const run = addCommand(group, 'run', 'acquire a node id, run a command with it, release it when the command has ended')
    .usage('[options] -- command [argument...]')
    .option('--env <name=template>', ENV_HELP, (text, earlier: readonly string[] = []) => [...earlier, text])
    .action(async ({ env: templates = [] }: { env?: readonly string[] }) => {
      const settings = settingsOf(run, io);
      checkTokenUse(run, settings);
      const [file, ...childArgs] = childCommand ?? [];
      if (file === undefined) throw new UsageError('no command given: expected one after --, as in "nodelease run -- node server.js"');
      const env =
        templates.length === 0 ? [] : (await import('../run/env-templates.js')).parseEnvTemplates(templates, settings.http !== undefined);
      const { runCommand } = await import('./run-command.js');
      end(await runCommand({ command: [file, ...childArgs], env }, settings, io));
    });
  if (childCommand === undefined) settleOutput(run, io, '; the command to run goes after --, as in "nodelease run -- node server.js"');
  addSettings(run);
}

function addServe(group: CommandGroup): void {
  const { io, end } = group;
  const serve = addCommand(group, 'serve', 'hold a node id for the other containers of a task, and tell them of it over HTTP')
    .option('--wait-file <path>', 'a file that is there while the node id is held, and may be used')
    .action(async (options: ServeOptions) => {
      const settings = settingsOf(serve, io);
      const { serveCommand } = await import('./serve-command.js');
      end(await serveCommand(options, settings, io));
    });
  addSettings(serve);
}

function addHealth(group: CommandGroup): void {
  const { io, end } = group;
  addCommand(group, 'health', 'ask a running instance whether it is ready: exit code 0 when it is, else 1')
    .option('--url <url>', 'where it answers (default: NODELEASE_URL, else as NODELEASE_HTTP says, else http://127.0.0.1:7070)')
    .option('--live', 'whether it is worth keeping, rather than ready: until the lease is lost')
    .option('--timeout <time>', 'how long to wait for the answer, 1ms to 60s (default: 2s)')
    .option('--json', 'one JSON object, on one line')
    .action(async (options: HealthOptions) => {
      const { healthCommand } = await import('./health-command.js');
      end(await healthCommand(options, io));
    });
}

const ENV_HELP =
  'a variable for the command, any number of times: {id}, {version}, {taskId}, {url} and {clusterNodeId} (8 + id) stand for what was acquired, {{ and }} for braces';

/** A variable may be there for other commands; an option is meant for this one. */
function checkTokenUse(command: Command, { http }: Settings): void {
  const { bearerTokenFile } = command.opts<{ bearerTokenFile?: string }>();
  if (bearerTokenFile === undefined || http !== undefined) return;
  throw new ConfigError('--bearer-token-file', bearerTokenFile, '--http beside it (nobody can ask for anything without)');
}
