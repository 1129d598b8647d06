import { h } from 'preact';
import { useState } from 'preact/hooks';
import type { NodeNow } from '../model/cluster-model.js';
import { rowButton } from './folders.js';
import type { Frame } from './frame.js';
import { fact, facts, panel, quiet } from './ui.js';

interface ActsProps {
  readonly acts: readonly string[];
  readonly nodes: readonly NodeNow[];
  readonly frame: Frame;
}

/** What may be done to the tasks of the demo, each with a button. */
export function ActsPanel({ acts, nodes, frame }: ActsProps) {
  const [notice, setNotice] = useState('');
  const ask = async (act: string, id: number) =>
    setNotice(await frame.change(`api/acts/${act}/${id}`, { method: 'POST' }, false));
  const rows = nodes.map(({ node: { id, taskId }, state }) => {
    const button = (act: string) => [
      ' ',
      rowButton(act, `the task of node id ${id}`, `${id}`, () => ask(act, id)),
    ];
    const content = state === 'held' && [h('code', null, taskId), acts.map(button)];
    return fact(`Node id ${id}`, content || state);
  });
  return panel(
    'acts',
    'Try it',
    null,
    quiet('Kill or freeze a task: another one takes over its node id. Stop it: the id is free at once.'),
    facts(rows),
    h('p', { role: 'status' }, notice),
  );
}
