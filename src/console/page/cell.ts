import { formatDuration } from '../format.js';
import type { KnownVersions } from '../knowledge.js';
import { describeNode, NODE_STATES, type NodeState } from '../node-state.js';
import type { WireNode } from '../wire.js';
import { make, mark, setData, setText } from './dom.js';

/** How much room a cell has: with everything in it, with the most important, or a number and a bar. */
export type Density = 'cards' | 'tiles' | 'dots';

/**
 * Into how many steps a bar is divided: no finer than anybody can see, so that few cells are drawn anew at
 * once.
 */
const STEPS: Readonly<Record<Density, number>> = { cards: 300, tiles: 90, dots: 32 };
/**
 * A lease is renewed every third of its duration: with less than this left, two renewals have been missed.
 */
const LATE = 0.3;

/** What a cell shows at one moment. */
export interface CellLook {
  readonly node: WireNode;
  readonly state: NodeState;
  readonly left: number | undefined;
  readonly durationMs: number;
  readonly graceMs: number;
}

/** One node id in the grid. */
export class Cell {
  readonly element: HTMLElement;
  state: NodeState = 'free';
  #step = -1;
  #label = '';
  readonly #bar = make('i');
  readonly #mark = mark('free');
  readonly #state = make('span', { class: 'cell-state' });
  readonly #holder = make('span', { class: 'cell-holder' });
  readonly #version = make('span', { class: 'cell-version' });
  readonly #left = make('span', { class: 'cell-left' });
  readonly #note = make('span', { class: 'cell-note' });

  constructor(
    readonly id: number,
    private readonly density: Density,
  ) {
    const attributes = {
      class: 'cell',
      role: 'option',
      tabindex: '-1',
      'aria-selected': 'false',
      'data-id': String(id),
    };
    const bar = make('span', { class: 'bar' }, this.#bar);
    const parts = {
      cards: [this.#holder, this.#state, this.#mark, this.#version, this.#left, bar, this.#note],
      tiles: [this.#mark, this.#holder, this.#version, bar],
      dots: [this.#mark, bar],
    }[density];
    this.element = make('div', attributes, make('span', { class: 'cell-id' }, String(id)), ...parts);
  }

  /** Shows what changes with the lease, where that is different, and what changes by itself. */
  show(look: CellLook): void {
    const label = describeNode(look.node, look.state);
    if (label !== this.#label) this.#draw(look, label);
    this.tick(look);
  }

  #draw({ node, state }: CellLook, label: string): void {
    this.#label = label;
    this.state = state;
    setData(this.element, 'state', state);
    setData(this.#mark, 'mark', state);
    this.element.setAttribute('aria-label', label);
    const isCard = this.density === 'cards';
    if (!isCard) this.element.title = label;
    const nobody = node.version > 0 ? 'nobody' : 'never held';
    setText(this.#state, state);
    setText(this.#version, node.version > 0 ? `v${node.version}` : '');
    setText(this.#holder, node.taskId ?? (isCard ? nobody : state));
  }

  /** Shows what changes by itself: called some times a second, and cheap where nothing is to be seen. */
  tick({ state, left, durationMs, graceMs }: CellLook): void {
    const isOver = left !== undefined && left <= 0;
    // Past the deadline the bar shows what is left of the grace period.
    const span = isOver ? graceMs : durationMs;
    const share =
      left === undefined || span <= 0 ? 0 : Math.min(1, Math.max(0, (isOver ? graceMs + left : left) / span));
    const steps = STEPS[this.density];
    const step = Math.ceil(share * steps);
    if (step !== this.#step) {
      this.#step = step;
      this.#bar.style.transform = `scaleX(${step / steps})`;
      setData(this.element, 'late', state === 'held' && share < LATE && left !== undefined ? '' : undefined);
    }
    if (this.density === 'cards') setText(this.#left, leftText(state, left, graceMs));
  }

  /** What there is to say of how it came to be as it is: on a card. */
  note(text: string): void {
    setText(this.#note, text);
  }

  /** How far its holder knows the version of the node id that is selected. */
  showKnown(versions: KnownVersions | undefined): void {
    setData(this.element, 'known', versions?.get(this.id)?.known);
  }
}

/** A hundred node ids under a heading that sums them up. */
export class IdGroup {
  readonly element: HTMLElement;
  /** Whether it is in sight, or nearly so. */
  isSeen = true;
  readonly #sum = make('span', { class: 'group-sum' });

  constructor(
    first: number,
    readonly cells: readonly Cell[],
    hasHeading: boolean,
  ) {
    const range = `${first} – ${cells.at(-1)?.id ?? first}`;
    const heading =
      hasHeading &&
      make('div', { class: 'group-heading', 'aria-hidden': 'true' }, make('b', {}, range), this.#sum);
    const body = make(
      'div',
      { class: 'cells', role: 'presentation' },
      ...cells.map(({ element }) => element),
    );
    this.element = make(
      'div',
      { class: 'group', role: 'group', 'aria-label': `Node ids ${range}` },
      heading,
      body,
    );
    // The browser reserves the room of a group that it has not drawn yet.
    this.element.style.setProperty('--count', String(cells.length));
    this.element.addEventListener('contentvisibilityautostatechange', (event) => {
      this.isSeen = !(event as ContentVisibilityAutoStateChangeEvent).skipped;
    });
  }

  /** Hides the cells that do not fit, and itself with the last of them. */
  apply(fits: (cell: Cell) => boolean): void {
    const counts = new Map<NodeState, number>();
    for (const cell of this.cells) {
      const isHidden = !fits(cell);
      if (cell.element.hidden !== isHidden) cell.element.hidden = isHidden;
      counts.set(cell.state, (counts.get(cell.state) ?? 0) + 1);
    }
    const isHidden = this.cells.every(({ element }) => element.hidden);
    if (this.element.hidden !== isHidden) this.element.hidden = isHidden;
    const sums = NODE_STATES.flatMap((state) => (counts.has(state) ? [`${counts.get(state)} ${state}`] : []));
    setText(this.#sum, sums.join(' · '));
  }
}

/** How much longer a lease is valid, in words. */
export function leftText(state: NodeState, left: number | undefined, graceMs: number): string {
  if (left === undefined) return '';
  if (left > 0) return `${formatDuration(left)} left`;
  const untilFree = graceMs + left;
  if (state === 'overdue' && untilFree > 0) return `free in ${formatDuration(untilFree)}`;
  return `${formatDuration(-left)} over`;
}
