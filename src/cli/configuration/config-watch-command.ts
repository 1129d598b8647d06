import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { explain } from '../../base/errors.js';
import { type ConfigurationChange, type ConfigurationEvent, openConfiguration } from '../../configuration/configuration.js';
import { complain, sayJson, sayLines } from '../commands/store-command.js';
import { exitCodeOfStop } from '../exit-codes.js';
import { Interrupted } from '../run/signal-relay.js';
import { pluralize, printable } from '../terminal/text.js';
import { type ConfigCall, onConfig } from './config-call.js';
import { changeRow, revisionsText } from './config-read-commands.js';

/**
 * `nodelease config watch`: prints every change, until a signal ends it: 0 for SIGINT and SIGTERM. With `--exec` it runs the command after each, one
 * at a time; changes that come meanwhile are one run more. With `--node` it counts as that node, with its overrides.
 */
export function watchConfig(call: ConfigCall): Promise<number> {
  const { io, options } = call;
  return onConfig(call, async ({ name, nodeId, place, signal }) => {
    const onEvent = (event: ConfigurationEvent) => 'problem' in event && complain(io, event.problem);
    const { zookeeper, clock, random } = place;
    const config = await openConfiguration(zookeeper, { ...name, nodeId, signal, onEvent, clock, random });
    const tell = (kind: 'watching' | 'changed', { changes, revisions }: ConfigurationChange) => {
      const time = new Date(clock.now()).toISOString();
      const told = changes.map(({ key, old = null, new: value = null }) => ({ key, old, new: value }));
      if (options.json) sayJson(io, { time, change: kind, revisions, changes: told });
      else if (kind === 'watching')
        sayLines(io, [printable(`${time}  ${pluralize(config.values.size, 'key')} of ${revisionsText(revisions)}: watching`)]);
      else {
        const rows = told.map(changeRow).map(([key, , old, now]) => `${time}  ${key}: ${old} -> ${now}`);
        sayLines(io, (rows.length > 0 ? rows : [`${time}  ${revisionsText(revisions)}: no other values`]).map(printable));
      }
    };
    let pending: ConfigurationChange | undefined;
    let running = false;
    const execute = async (command: string, change: ConfigurationChange) => {
      pending = change;
      if (running) return;
      running = true;
      while (pending && !signal.aborted) {
        const env = { ...io.env, CONFIG_REVISION: String(Object.values(pending.revisions)[0]) };
        pending = undefined;
        await executed(command, env, signal, (problem) => complain(io, `--exec: ${problem}`));
      }
      running = false;
    };
    try {
      tell('watching', { changes: [], revisions: config.revisions });
      const forget = config.onChange((change) => {
        tell('changed', change);
        if (options.exec !== undefined) void execute(options.exec, change);
      });
      const stop = once(signal, 'abort');
      if (!signal.aborted) await stop;
      forget();
    } finally {
      await config.close();
    }
    const { reason }: { reason: unknown } = signal;
    if (reason instanceof Interrupted) return exitCodeOfStop(reason.signal);
    throw reason;
  });
}

/** Runs a command of the shell to its end, which a signal brings forward. Never rejects. */
async function executed(command: string, env: NodeJS.ProcessEnv, signal: AbortSignal, onProblem: (problem: string) => void): Promise<void> {
  try {
    const child = spawn(command, { shell: true, env, stdio: ['ignore', 'inherit', 'inherit'], signal });
    const [code, ended] = (await once(child, 'exit')) as [number | null, NodeJS.Signals | null];
    if (code !== 0) onProblem(`the command ended with ${code ?? ended}`);
  } catch (error) {
    if (!signal.aborted) onProblem(explain(error));
  }
}
