import { once } from 'node:events';
import {
  type ConfigurationChange,
  type ConfigurationEvent,
  openConfiguration,
} from '../../configuration/configuration.js';
import { exitCodeOfStop } from '../exit-codes.js';
import { complain, sayJson, sayLines } from '../kit/reported.js';
import { Interrupted } from '../terminal/signal-relay.js';
import { printable } from '../terminal/text.js';
import { type ConfigCall, onConfig } from './config-call.js';
import { changeRow, revisionsText } from './config-commands.js';

/**
 * `nodelease config watch`: prints every change, until a signal ends it: 0 for SIGINT and SIGTERM. With
 * `--node` it counts as that node.
 */
export function watch(call: ConfigCall): Promise<number> {
  const { io, options } = call;
  return onConfig(call, async ({ name, nodeId, place, signal }) => {
    const { zookeeper, clock, random } = place;
    const onEvent = (event: ConfigurationEvent) => 'problem' in event && complain(io, event.problem);
    const tell = ({ changes, revisions }: ConfigurationChange, state?: string) => {
      const time = new Date(clock.now()).toISOString();
      const told = changes.map(({ key, old = null, new: value = null }) => ({ key, old, new: value }));
      if (options.json) return sayJson(io, { time, change: state ?? 'changed', revisions, changes: told });
      const lines = told.map(changeRow).map(([key, old, now]) => `${key}: ${old} -> ${now}`);
      const all = lines.length > 0 ? lines : [`${revisionsText(revisions)}: ${state ?? 'no other values'}`];
      sayLines(
        io,
        all.map((line) => printable(`${time}  ${line}`)),
      );
    };
    await using config = await openConfiguration(zookeeper, {
      ...name,
      nodeId,
      signal,
      onEvent,
      clock,
      random,
    });
    config.onChange(tell);
    tell({ changes: [], revisions: config.revisions }, 'watching');
    if (!signal.aborted) await once(signal, 'abort');
    const { reason }: { reason: unknown } = signal;
    if (reason instanceof Interrupted) return exitCodeOfStop(reason.signal);
    throw reason;
  });
}
