import { ConfigError, explain } from '../../base/errors.js';
import type { NodeMonitor } from '../../monitor/node-monitor.js';
import type { RetirePolicy, Settings } from '../../settings/settings.js';
import { ExitCode, UsageError } from '../exit-codes.js';
import { type Logger, loggerFor } from '../log/logger.js';
import { ChildStartError, closeFiles, inheritedFiles, startChild } from '../run/child.js';
import { lookUpCommand } from '../run/command-lookup.js';
import { type EnvTemplate, parseEnvTemplates } from '../run/env-templates.js';
import { canGuard, type Guard, SHELL, startGuard } from '../run/guard.js';
import { whyStopping } from '../run/retirement.js';
import { SignalRelay } from '../run/signal-relay.js';
import { supervise, type WorkEnd } from '../run/supervisor.js';
import { runWorkload, type Workload, type WorkloadNode, type WorkloadOptions } from '../run/workload.js';
import type { Io } from '../terminal/io.js';
import { logFailure } from './store-command.js';

/** The options of `run` that it reads itself, as they stand on the command line. */
export interface RunOptions {
  /** Templates of further variables of the command's environment. */
  readonly env?: readonly string[];
  readonly bearerTokenFile?: string;
}

/** `nodelease run -- command`: acquires a node id, runs the command with it, and releases it when the command has ended. */
export async function runCommand(command: readonly string[], options: RunOptions, settings: Settings, io: Io): Promise<number> {
  const { env: templates = [], bearerTokenFile } = options;
  // A variable may be there for other commands; an option is meant for this one.
  if (bearerTokenFile !== undefined && settings.http === undefined)
    throw new ConfigError('--bearer-token-file', bearerTokenFile, '--http beside it (nothing can be asked for without)');
  const [file, ...args] = command;
  if (file === undefined) throw new UsageError('no command given: expected one after --, as in "nodelease run -- node server.js"');
  const env = parseEnvTemplates(templates, settings.http !== undefined);
  const lookup = lookUpCommand(file, io.env.PATH);
  if (lookup !== 'executable') {
    io.stderr(`nodelease: ${file}: ${lookup === 'not-found' ? 'command not found' : 'not executable'}\n`);
    return lookup === 'not-found' ? ExitCode.notFound : ExitCode.notExecutable;
  }
  const files = inheritedFiles();
  const signals = new SignalRelay(io.signals);
  const log = await loggerFor(settings, io);
  try {
    const http = await httpFor(settings, io);
    const { onRetire = 'stop' } = settings;
    const workload = new CommandWorkload({ command: [file, ...args], env, onRetire, files, io, signals, monitor: http?.monitor });
    return await runWorkload({ settings, io, signals, log, http }, workload);
  } catch (error) {
    return logFailure(error, log, ' before the command was started');
  } finally {
    signals.close();
  }
}

/** HTTP's code is loaded only where it is asked for: a run has to start fast. */
async function httpFor(settings: Settings, io: Io): Promise<WorkloadOptions['http']> {
  const { http: at } = settings;
  if (at === undefined) return undefined;
  const { NodeMonitor } = await import('../../monitor/node-monitor.js');
  const { NodeHttp } = await import('../run/node-http.js');
  const monitor = new NodeMonitor();
  return { monitor, open: (log: Logger) => NodeHttp.open({ at, settings, io, log, monitor }) };
}

interface CommandWorkloadOptions {
  readonly command: readonly [file: string, ...args: string[]];
  readonly env: readonly EnvTemplate[];
  readonly onRetire: RetirePolicy;
  /** What {@link inheritedFiles} has told. */
  readonly files: readonly number[];
  readonly io: Io;
  readonly signals: SignalRelay;
  readonly monitor: NodeMonitor | undefined;
}

/** A command, as the workload that a node id is held for. */
class CommandWorkload implements Workload {
  #guard: Guard | undefined;

  constructor(private readonly options: CommandWorkloadOptions) {}

  renewed(deadline: number): void {
    this.#guard?.extend(deadline);
  }

  async run(node: WorkloadNode): Promise<WorkEnd> {
    const { lease, log, routing } = node;
    const { command, files, io, signals, monitor, onRetire } = this.options;
    const guarded = canGuard(io.env.PATH);
    if (guarded) this.#guard = startGuard({ clock: io.clock, path: io.env.PATH });
    else log.warn(`no ${SHELL} or no sleep here: nothing will stop the command when this process is killed or paused`);
    // The guard has them now, and with them a lock that the starter of this process holds until the work has ended.
    closeFiles(files);
    const env = this.#environment(node);
    const beforeStop = async () => {
      monitor?.stopping(whyStopping(lease));
      await routing?.withdraw();
    };
    try {
      return await supervise({
        ...{ lease, clock: io.clock, log, guard: this.#guard, signals, keyboard: io.keyboard, onRetire },
        beforeStop: routing || monitor ? beforeStop : undefined,
        start: async () => {
          const child = await startChild({ command, env, gated: guarded });
          routing?.begin();
          return child;
        },
      });
    } catch (error) {
      // For any other error the child may be running: then the guard ends it, as soon as this process is gone.
      if (!(error instanceof ChildStartError)) throw error;
      this.#guard?.done();
      log.fatal(explain(error));
      return { exitCode: error.missing ? ExitCode.notFound : ExitCode.notExecutable, workEnded: true };
    }
  }

  /** What the command finds in its environment. Where this run listens is told by its URL: a run within it must not listen there, too. */
  #environment({ lease: { id, version, taskId }, url }: WorkloadNode): Record<string, string | undefined> {
    const own = { NODE_ID: String(id), NODE_ID_VERSION: String(version), NODELEASE_TASK_ID: taskId };
    const templates = this.options.env.map(({ name, value }) => [name, value({ id, version, taskId, url })] as const);
    // An inherited one tells of another node id.
    const http = { NODELEASE_URL: url, ...(url !== undefined && { NODELEASE_HTTP: undefined }) };
    return { ...this.options.io.env, ...Object.fromEntries(templates), ...own, ...http };
  }
}
