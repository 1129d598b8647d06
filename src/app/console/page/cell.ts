import { type ComponentChildren, h } from 'preact';
import type { NodeNow } from '../model/cluster-model.js';
import { formatDuration } from '../model/format.js';
import { describeNode, type NodeState } from '../model/node-state.js';
import { flag, mark, memo } from './ui.js';

/** How much room a cell has: with everything in it, with the most important, or a number and a bar. */
export type Density = 'cards' | 'tiles' | 'dots';

/** Steps of a bar: no finer than can be seen, so that few cells change in one drawing. */
const STEPS: Readonly<Record<Density, number>> = { cards: 300, tiles: 90, dots: 32 };
/** A lease is renewed every third of its duration: with less than this, two renewals have been missed. */
const LATE = 0.3;

/** What a cell shows in addition to its node id. */
interface CellView {
  readonly density: Density;
  readonly durationMs: number;
  readonly graceMs: number;
  /** A text about the node id, on a card. */
  readonly note: string;
  readonly isHidden: boolean;
  readonly isSelected: boolean;
  /** Whether Tab leads to it. */
  readonly isEntry: boolean;
  /** How far its holder knows the version of the selected node id. */
  readonly known: string | undefined;
}

/** One node id. Its content is drawn only where something has changed that can be seen. */
export function cell({ node, state, left }: NodeNow, view: CellView) {
  const { id, version, taskId } = node;
  const { density, durationMs, graceMs, note } = view;
  const isCard = density === 'cards';
  const isOver = left !== undefined && left <= 0;
  // Past the deadline the bar shows what is left of the grace period.
  const whole = isOver ? graceMs : durationMs;
  const share = whole > 0 ? Math.min(1, Math.max(0, (isOver ? graceMs + left : (left ?? 0)) / whole)) : 0;
  const step = Math.ceil(share * STEPS[density]);
  const time = isCard ? leftText(state, left, graceMs) : '';
  const label = describeNode(node, state);
  const attributes = {
    key: id,
    id: `node-${id}`,
    class: 'cell',
    role: 'option',
    tabIndex: view.isEntry ? 0 : -1,
    'aria-selected': view.isSelected,
    'aria-label': label,
    title: label,
    hidden: view.isHidden,
    'data-id': id,
    'data-state': state,
    'data-late': flag(state === 'held' && left !== undefined && share < LATE),
    'data-known': view.known,
  } as const;
  const part = (name: string, content: ComponentChildren) => h('span', { class: `cell-${name}` }, content);
  const draw = () => {
    const name = taskId ?? (isCard ? (version > 0 ? 'no task' : 'never held') : state);
    // A name is cut before its end where there is no room: names of tasks differ at either end.
    const holder = part('holder', [h('span', null, name.slice(0, -5)), h('span', null, name.slice(-5))]);
    const ofVersion = part('version', version > 0 ? `v${version}` : '');
    const parts = {
      cards: [holder, part('state', state), mark(state), ofVersion, part('left', time)],
      tiles: [mark(state), holder, ofVersion],
      dots: mark(state),
    }[density];
    return [part('id', `${id}`), parts];
  };
  const bar = h(
    'span',
    { class: 'bar' },
    h('i', { style: { transform: `scaleX(${step / STEPS[density]})` } }),
  );
  const content = memo(draw, [node, state, density, time]);
  return h('div', attributes, content, bar, isCard && part('note', note));
}

/** How much longer a lease is valid, in words. */
export function leftText(state: NodeState, left: number | undefined, graceMs: number): string {
  if (left === undefined) return '';
  if (left > 0) return `${formatDuration(left)} left`;
  const untilFree = graceMs + left;
  if (state === 'overdue' && untilFree > 0) return `free in ${formatDuration(untilFree)}`;
  return `${formatDuration(-left)} over`;
}
