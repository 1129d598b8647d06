import {
  type ConfigurationChange,
  type ConfigurationEvent,
  openConfiguration,
} from '../../zookeeper/configuration/configuration.js';
import { complain } from '../kit/answer.js';
import { interruption, watching } from '../kit/call.js';
import { showChanges } from '../kit/changes.js';
import { type ConfigCall, onConfig } from './config-call.js';
import { changeRow, revisionsText } from './config-commands.js';

/**
 * `nodelease config watch`: prints every change, until a signal ends it: 0 for SIGINT and SIGTERM. With
 * `--node` it counts as that node.
 */
export function watch(call: ConfigCall): Promise<number> {
  const showChange = showChanges(call);
  return onConfig(call, async ({ name, nodeId, place, signal }) => {
    const { zookeeper, clock, random } = place;
    const onEvent = (event: ConfigurationEvent) => 'problem' in event && complain(call.io, event.problem);
    const show = ({ changes, revisions }: ConfigurationChange, state?: string) => {
      const shown = changes.map(({ key, old = null, new: value = null }) => ({ key, old, new: value }));
      const lines = shown.map(changeRow).map(([key, old, now]) => `${key}: ${old} -> ${now}`);
      if (lines.length === 0) lines.push(`${revisionsText(revisions)}: ${state ?? 'no other values'}`);
      showChange({ change: state ?? 'changed', revisions, changes: shown }, undefined, ...lines);
    };
    return watching(signal, async () => {
      await using config = await openConfiguration(zookeeper, {
        ...name,
        nodeId,
        signal,
        onEvent,
        clock,
        random,
      });
      config.onChange(show);
      show({ changes: [], revisions: config.revisions }, 'watching');
      await interruption(signal);
    });
  });
}
