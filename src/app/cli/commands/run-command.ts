import { ConfigError } from '../../../core/base/errors.js';
import type { NodeMonitor } from '../../../node/runtime/node-monitor.js';
import type { CommandConfig, ConfiguredRun } from '../../configuration/command-config.js';
import type { Variables } from '../../configuration/config-variables.js';
import type { Call } from '../../kit/call.js';
import type { Io } from '../../kit/io.js';
import type { Logger } from '../../kit/log/logger.js';
import type { SignalRelay } from '../../kit/terminal/signal-relay.js';
import { listening, NOT_INHERITED, ownVariables } from '../../products.js';
import type { Settings } from '../../settings/settings.js';
import { type EnvTemplate, parseEnvTemplates } from '../../supervisor/env-templates.js';
import { whyStopping } from '../../supervisor/held.js';
import { type SupervisedCommand, withCommand } from '../../supervisor/supervised-command.js';
import type { WorkEnd } from '../../supervisor/supervisor.js';
import { runWorkload, type Workload, type WorkloadNode, type WorkloadOptions } from '../run/workload.js';

/** The options of `run` that it reads itself, as they are on the command line. */
interface RunOptions {
  /** Templates of further variables of the command's environment. */
  readonly env?: readonly string[];
  readonly bearerTokenFile?: string;
}

/**
 * `nodelease run -- command`: acquires a node id, runs the command with it, and releases it when the command
 * has ended.
 */
export async function runCommand(
  { options, settings: given, io }: Call<RunOptions>,
  ...words: string[]
): Promise<number> {
  const { env: templates = [], bearerTokenFile } = options;
  const settings = listening(given);
  // A variable may be there for other commands; an option is meant for this one.
  if (bearerTokenFile !== undefined && settings.http === undefined)
    throw new ConfigError(
      '--bearer-token-file',
      bearerTokenFile,
      '--http with it (nothing can be asked for without)',
    );
  const env = parseEnvTemplates(templates, settings.http !== undefined);
  const restarts = settings.config?.onChange === 'restart';
  return withCommand({ settings, io }, words, restarts, async (command, log, signals) => {
    const http = await httpFor(settings, io);
    const workload = new CommandWorkload({ command, env, settings, io, signals, monitor: http?.monitor });
    return runWorkload({ settings, io, signals, log, http }, workload);
  });
}

/** HTTP's code is loaded only where it is asked for: a run has to start fast. */
async function httpFor(settings: Settings, io: Io): Promise<WorkloadOptions['http']> {
  const { http: at } = settings;
  if (at === undefined) return undefined;
  const { NodeMonitor } = await import('../../../node/runtime/node-monitor.js');
  const { NodeHttp } = await import('../node-http/node-http.js');
  const monitor = new NodeMonitor();
  return { monitor, open: (log: Logger) => NodeHttp.open({ at, settings, io, log, monitor }) };
}

interface CommandWorkloadOptions {
  readonly command: SupervisedCommand;
  readonly env: readonly EnvTemplate[];
  readonly settings: Pick<Settings, 'onRetire' | 'config'>;
  readonly io: Io;
  readonly signals: SignalRelay;
  readonly monitor: NodeMonitor | undefined;
}

/** A command, as the workload that a node id is held for. */
class CommandWorkload implements Workload {
  #config: CommandConfig | undefined;

  constructor(private readonly options: CommandWorkloadOptions) {}

  renewed(deadline: number): void {
    this.options.command.extend(deadline);
  }

  async prepare(node: WorkloadNode): Promise<void> {
    const { settings, io, signals } = this.options;
    if (settings.config === undefined) return;
    const { CommandConfig } = await import('../../configuration/command-config.js');
    this.#config = await CommandConfig.open(settings.config, node, { ...io, signal: signals.interrupted });
  }

  async run(node: WorkloadNode): Promise<WorkEnd> {
    const config = this.#config;
    if (config === undefined) return this.#runOnce(node);
    try {
      // A command that is started again finds the files of the one before.
      for (let again = node; ; again = { ...node, dataRestored: true }) {
        const end = await config.during((run) => this.#runOnce(again, run));
        if (!end.again) return end;
      }
    } finally {
      await config.close();
    }
  }

  async #runOnce(
    node: WorkloadNode,
    { variables, restart, onStart }: Partial<ConfiguredRun> = {},
  ): Promise<WorkEnd> {
    const { lease, log, routing, served } = node;
    const { command, monitor, settings } = this.options;
    const beforeStop = async () => {
      monitor?.stopping(whyStopping(lease));
      await routing?.withdraw();
    };
    if (served) served.isWorking = true;
    const end = await command.run({
      lease,
      env: this.#environment(node, variables),
      log,
      onRetire: settings.onRetire,
      restart,
      beforeStop: routing || monitor ? beforeStop : undefined,
      onStart: onStart ?? (() => routing?.begin()),
    });
    if (served) served.isWorking = !end.workEnded;
    return end;
  }

  /**
   * What the command finds in its environment. The URL says where this run listens: a run within it must not
   * listen there, too, nor get work of which its command does not know.
   */
  #environment(
    { lease: { id, version, taskId, previous }, url, ...own }: WorkloadNode,
    variables: Variables | undefined,
  ): Record<string, string | undefined> {
    const templates = this.options.env.map(
      ({ name, value }) => [name, value({ id, version, taskId, url })] as const,
    );
    return {
      ...this.options.io.env,
      ...Object.fromEntries([...(variables ?? []), ...templates]),
      NODE_ID: String(id),
      NODE_ID_VERSION: String(version),
      NODELEASE_TASK_ID: taskId,
      NODE_PREVIOUS: previous,
      ...ownVariables(own),
      NODELEASE_URL: url,
      NODELEASE_ECS_PROTECT: undefined,
      ...(url !== undefined && NOT_INHERITED),
    };
  }
}
