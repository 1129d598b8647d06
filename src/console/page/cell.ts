import { h } from 'preact';
import type { NodeNow } from '../cluster-model.js';
import { formatDuration } from '../format.js';
import type { KnownVersions } from '../knowledge.js';
import { describeNode, type NodeFilter, type NodeState } from '../node-state.js';
import { flag, mark, memo } from './ui.js';

/** How much room a cell has: with everything in it, with the most important, or a number and a bar. */
export type Density = 'cards' | 'tiles' | 'dots';

/** Steps of a bar: no finer than can be seen, so that few cells change in one drawing. */
const STEPS: Readonly<Record<Density, number>> = { cards: 300, tiles: 90, dots: 32 };
/** A lease is renewed every third of its duration: with less than this, two renewals have been missed. */
const LATE = 0.3;

/** What all cells have in common: the same object until something else than the time has changed. */
export interface GridView {
  readonly density: Density;
  readonly durationMs: number;
  readonly graceMs: number;
  readonly filter: NodeFilter;
  readonly selected: number | undefined;
  /** How far the holder of each node id knows the version of the selected one. */
  readonly known: KnownVersions | undefined;
}

/** One node id. It is drawn only where something has changed that can be seen. */
export function cell({ node, state, left }: NodeNow, view: GridView, note: string, isEntry: boolean) {
  const { id, version, taskId } = node;
  const { density, durationMs, graceMs } = view;
  const isCard = density === 'cards';
  const isOver = left !== undefined && left <= 0;
  // Past the deadline the bar shows what is left of the grace period.
  const whole = isOver ? graceMs : durationMs;
  const share = whole > 0 ? Math.min(1, Math.max(0, (isOver ? graceMs + left : (left ?? 0)) / whole)) : 0;
  const step = Math.ceil(share * STEPS[density]);
  const late = flag(state === 'held' && left !== undefined && share < LATE);
  const time = isCard ? leftText(state, left, graceMs) : '';
  const hidden = !view.filter(node, state);
  const isSelected = id === view.selected;
  const known = view.known?.get(id)?.known;
  const draw = () => {
    const label = describeNode(node, state);
    const attributes = {
      id: `node-${id}`,
      class: 'cell',
      role: 'option',
      tabIndex: isEntry ? 0 : -1,
      'aria-selected': isSelected,
      'aria-label': label,
      title: isCard ? undefined : label,
      hidden,
      'data-id': id,
      'data-state': state,
      'data-late': late,
      'data-known': known,
    } as const;
    const part = (name: string, content: string) => h('span', { class: `cell-${name}` }, content);
    const holder = part('holder', taskId ?? (isCard ? (version > 0 ? 'nobody' : 'never held') : state));
    const ofVersion = part('version', version > 0 ? `v${version}` : '');
    const style = { transform: `scaleX(${step / STEPS[density]})` };
    const bar = h('span', { class: 'bar' }, h('i', { style }));
    const parts = {
      cards: [
        holder,
        part('state', state),
        mark(state),
        ofVersion,
        part('left', time),
        bar,
        part('note', note),
      ],
      tiles: [mark(state), holder, ofVersion, bar],
      dots: [mark(state), bar],
    }[density];
    return h('div', attributes, part('id', `${id}`), parts);
  };
  const seen = [node, state, density, step, late, time, note, hidden, isEntry, isSelected, known];
  return memo(draw, seen, id);
}

/** How much longer a lease is valid, in words. */
export function leftText(state: NodeState, left: number | undefined, graceMs: number): string {
  if (left === undefined) return '';
  if (left > 0) return `${formatDuration(left)} left`;
  const untilFree = graceMs + left;
  if (state === 'overdue' && untilFree > 0) return `free in ${formatDuration(untilFree)}`;
  return `${formatDuration(-left)} over`;
}
