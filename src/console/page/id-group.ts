import { NODE_STATES, STATE_TITLES } from '../node-state.js';
import type { Cell } from './cell.js';
import { make, setText } from './dom.js';

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
    const heading = make('div', { class: 'group-heading', attributes: { 'aria-hidden': 'true' } }, make('b', { text: range }), this.#sum);
    const attributes = { role: 'group', 'aria-label': `Node ids ${range}` };
    const body = make('div', { class: 'cells', attributes: { role: 'presentation' } }, ...cells.map(({ element }) => element));
    this.element = make('div', { class: 'group', attributes }, ...(hasHeading ? [heading] : []), body);
    // The browser reserves the room of a group that it has not drawn yet.
    this.element.style.setProperty('--count', String(cells.length));
  }

  /** Hides the cells that do not fit, and itself with the last of them. Returns how many are left. */
  apply(fits: (cell: Cell) => boolean): number {
    const counts = new Map<string, number>();
    let shown = 0;
    for (const cell of this.cells) {
      const isShown = fits(cell);
      if (cell.element.hidden === isShown) cell.element.hidden = !isShown;
      if (isShown) shown += 1;
      counts.set(cell.state, (counts.get(cell.state) ?? 0) + 1);
    }
    if (this.element.hidden !== (shown === 0)) this.element.hidden = shown === 0;
    setText(
      this.#sum,
      NODE_STATES.flatMap((state) => (counts.has(state) ? [`${counts.get(state)} ${STATE_TITLES[state]}`] : [])).join(' · '),
    );
    return shown;
  }
}
