import { type ComponentChildren, h } from 'preact';
import { useLayoutEffect, useMemo, useState } from 'preact/hooks';
import type { NodeReport } from '../../../node/wire/status-report.js';
import type { ClusterModel, NodeNow, SeenNode } from '../model/cluster-model.js';
import { describeNode, knowledgeOf, leftText, NODE_STATES, parseFilter } from '../model/node-state.js';
import { flag, mark, memo } from './ui.js';

/** How much room a cell has: with everything in it, with the most important, or a number and a bar. */
export type Density = 'cards' | 'tiles' | 'dots';

/** Maximum number of ids that are shown as cards, and as tiles; more of them are dots. */
const MAX_CARDS = 24;
const MAX_TILES = 240;
/** Ids in a group: people find number 742 in the eighth one. */
const GROUP = 100;

export function densityOf(size: number): Density {
  return size <= MAX_CARDS ? 'cards' : size <= MAX_TILES ? 'tiles' : 'dots';
}

interface GridProps {
  readonly model: ClusterModel;
  readonly nodes: readonly NodeNow[];
  readonly filter: string;
  /** The node id that is selected. */
  readonly seen: SeenNode | undefined;
  /** The text about a node id that is on a card. */
  readonly note: (node: NodeReport) => string;
  readonly onSelect: (id: number | undefined) => void;
}

/** All node ids as cells, of which one has the focus and one may be selected. */
export function IdGrid({ model, nodes, filter, seen, note, onSelect }: GridProps) {
  const density = densityOf(nodes.length);
  const [focused, setFocused] = useState<number>();
  const selected = seen?.node.id;
  const durationMs = model.cluster?.cluster?.durationMs ?? 0;
  const { graceMs } = model;
  const know = () => (seen && model.knowsVersions ? knowledgeOf(seen.node, model.nodes).others : undefined);
  const others = useMemo(know, [model.nodes, seen]);
  // When the cell with the focus has gone, another one gets it.
  const hadFocus = cellAt(document.activeElement) !== null;
  useLayoutEffect(() => {
    if (hadFocus && document.activeElement === document.body) focusGrid();
  });
  const groups = Map.groupBy(nodes, ({ node }) => Math.floor(node.id / GROUP));
  const fits = parseFilter(filter);
  const shown = nodes.filter(({ node, state }) => fits(node, state));
  const areShown = new Set(shown);
  // Tab leads to the cell that last had the focus, else to the first one.
  const entry = (shown.find(({ node }) => node.id === focused) ?? shown[0])?.node.id;
  const attributes = {
    class: 'grid',
    id: 'grid',
    role: 'listbox',
    'aria-label': 'Node ids',
    'aria-orientation': 'horizontal',
    'data-density': density,
    'data-knowing': flag(others !== undefined),
    onClick: ({ target }: Event) => {
      const cell = cellAt(target);
      cell?.focus({ preventScroll: true });
      if (cell) onSelect(idOf(cell) === selected ? undefined : idOf(cell));
    },
    onFocusIn: ({ target }: Event) => {
      const cell = cellAt(target);
      if (cell) setFocused(idOf(cell));
    },
    onKeyDown: (event: KeyboardEvent) => {
      const cell = cellAt(event.target);
      if (!cell || event.altKey || event.ctrlKey || event.metaKey) return;
      const isChoice = event.key === 'Enter' || event.key === ' ';
      const next = isChoice ? cell : stepFrom(cell, event.key);
      if (!next) return;
      event.preventDefault();
      if (!isChoice) focusCell(next);
      // With the details open they follow the focus, so that one can read along.
      if (isChoice || selected !== undefined) onSelect(idOf(next));
    },
  } as const;
  const drawn = [...groups].map(([number, members]) => {
    const path = `group-${number}`;
    const isSeen = document.getElementById(path)?.checkVisibility({ contentVisibilityAuto: true }) ?? true;
    const [ownEntry, ownSelected] = [entry, selected].map((id) =>
      members.some(({ node }) => node.id === id) ? id : undefined,
    );
    const hidden = members.map((now) => !areShown.has(now));
    const known = members.map(({ node }) => others?.get(node.id)?.known);
    const draw = () => {
      const cells = members.map((now, at) =>
        cell(now, {
          density,
          durationMs,
          graceMs,
          note: density === 'cards' ? note(now.node) : '',
          isHidden: hidden[at] ?? false,
          isSelected: now.node.id === selected,
          isEntry: now.node.id === entry,
          known: known[at],
        }),
      );
      const range = `${number * GROUP} – ${members.at(-1)?.node.id}`;
      return h(
        'div',
        {
          class: 'group',
          role: 'group',
          'aria-label': `Node ids ${range}`,
          // The browser reserves room for cells that it has not drawn yet.
          style: { '--count': `${members.length}` },
          hidden: !hidden.includes(false),
        },
        groups.size > 1 && groupHeading(range, members),
        h('div', { id: path, class: 'cells', role: 'presentation' }, cells),
      );
    };
    // Out of sight, bars do not run.
    const own = [density, durationMs, graceMs, isSeen && nodes, ownEntry, ownSelected];
    const facts = members.flatMap(({ node, state }) => [node, state]);
    return memo(draw, [...own, ...facts, ...hidden, ...known], number);
  });
  const none = shown.length === 0 && h('p', { class: 'empty quiet' }, 'No node id fits the filter.');
  return h('div', attributes, drawn, none);
}

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
function cell({ node, state, left }: NodeNow, view: CellView) {
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

/** How many of a hundred node ids are in which state. */
function groupHeading(range: string, members: readonly NodeNow[]) {
  const byState = Map.groupBy(members, ({ state }) => state);
  const sums = NODE_STATES.flatMap((state) => {
    const { length } = byState.get(state) ?? [];
    return length > 0 ? [`${length} ${state}`] : [];
  });
  return h(
    'div',
    { class: 'group-heading', 'aria-hidden': 'true' },
    h('b', null, range),
    h('span', { class: 'group-sum' }, sums.join(' · ')),
  );
}

/** Brings a node id into sight, and gives it the focus. */
export function focusNode(id: number): void {
  focusCell(document.getElementById(`node-${id}`));
}

/** Gives the focus to the cell that last had it. */
export function focusGrid(): void {
  focusCell(document.querySelector<HTMLElement>('.cell[tabindex="0"]'));
}

function focusCell(cell: HTMLElement | null) {
  cell?.scrollIntoView({ block: 'nearest' });
  cell?.focus({ preventScroll: true });
}

/** Draws the eye to a node id. */
export function flash(id: number, kind: string): void {
  const cell = document.getElementById(`node-${id}`);
  if (cell === null) return;
  delete cell.dataset.flash;
  // The animation starts again only when the browser has seen the cell without it.
  void cell.offsetWidth;
  cell.dataset.flash = kind;
}

/** Where a key leads to from a cell. */
function stepFrom(cell: HTMLElement, key: string) {
  const shown = [...document.querySelectorAll<HTMLElement>('.cell:not([hidden])')];
  const index = shown.indexOf(cell);
  const id = idOf(cell);
  const steps: Readonly<Record<string, () => HTMLElement | undefined>> = {
    ArrowRight: () => shown[index + 1],
    ArrowLeft: () => shown[index - 1],
    ArrowDown: () => below(cell, shown.slice(index + 1), 1),
    ArrowUp: () => below(cell, shown.slice(0, index).reverse(), -1),
    PageDown: () => shown.find((each) => idOf(each) >= id + GROUP) ?? shown.at(-1),
    PageUp: () => shown.findLast((each) => idOf(each) <= id - GROUP) ?? shown[0],
    Home: () => shown[0],
    End: () => shown.at(-1),
  };
  return steps[key]?.();
}

/** The cell of the next row that is nearest to a cell; the rows follow in the direction `sign`. */
function below(from: HTMLElement, cells: readonly HTMLElement[], sign: 1 | -1) {
  const start = from.getBoundingClientRect();
  let best: { readonly cell: HTMLElement; readonly top: number; readonly distance: number } | undefined;
  for (const cell of cells) {
    const { left, top } = cell.getBoundingClientRect();
    if ((top - start.top) * sign < 2) continue;
    if (best !== undefined && Math.abs(top - best.top) > 2) break;
    const distance = Math.abs(left - start.left);
    if (best === undefined || distance < best.distance) best = { cell, top, distance };
  }
  return best?.cell;
}

function cellAt(target: EventTarget | null) {
  return target instanceof Element ? target.closest<HTMLElement>('.cell') : null;
}

function idOf(cell: HTMLElement) {
  return Number(cell.dataset.id);
}
