import type { ClusterModel, SeenNode } from '../cluster-model.js';
import type { Knowledge } from '../knowledge.js';
import type { NodeFilter } from '../node-state.js';
import { Cell, type CellLook, type Density, IdGroup } from './cell.js';
import { find, make, setData } from './dom.js';

/** Maximum number of ids that are shown as cards, and as tiles; more of them are dots. */
const MAX_CARDS = 24;
const MAX_TILES = 240;
/** Ids in a group: people find number 742 in the eighth one. */
const GROUP = 100;
/** Bars out of sight run once in this many ticks. */
const ALL_EVERY = 10;

/** All node ids as cells, of which one has the focus and one may be selected. */
export class IdGrid {
  density: Density = 'cards';
  readonly #root = find('grid');
  readonly #none = make('p', { class: 'empty quiet' }, 'No node id fits the filter.');
  #cells = new Map<number, Cell>();
  #groups: IdGroup[] = [];
  #filter: NodeFilter = () => true;
  #selected: number | undefined;
  #current: number | undefined;
  #ticks = 0;

  constructor(
    private readonly model: ClusterModel,
    private readonly onSelect: (id: number | undefined) => void,
  ) {
    this.#root.addEventListener('click', (event) => this.#click(event));
    this.#root.addEventListener('keydown', (event) => this.#key(event));
    this.#root.addEventListener('focusin', (event) => this.#focused(event));
  }

  /** Shows the nodes as they are now. */
  update(): void {
    const { nodes } = this.model;
    if (nodes.length !== this.#cells.size || nodes.some(({ node }) => !this.#cells.has(node.id)))
      this.#build();
    for (const seen of nodes) this.#cells.get(seen.node.id)?.show(this.#look(seen));
    this.filter();
  }

  /**
   * Lets the bars run: the visible ones, and now and then all. Returns whether a lease has run out, although
   * nothing was heard of it.
   */
  tick(): boolean {
    this.#ticks += 1;
    let hasTurned = false;
    for (const group of this.#groups) {
      if (!group.isSeen && this.#ticks % ALL_EVERY !== 0) continue;
      for (const cell of group.cells) {
        const seen = this.model.node(cell.id);
        if (seen === undefined) continue;
        const look = this.#look(seen);
        hasTurned ||= look.state !== cell.state;
        if (look.state === cell.state) cell.tick(look);
        else cell.show(look);
      }
    }
    if (hasTurned) this.filter();
    return hasTurned;
  }

  /** Shows only what fits. @default what fitted the last filter */
  filter(filter: NodeFilter = this.#filter): void {
    this.#filter = filter;
    const fits = (cell: Cell) => {
      const seen = this.model.node(cell.id);
      return seen !== undefined && filter(seen.node, cell.state);
    };
    for (const group of this.#groups) group.apply(fits);
    this.#none.hidden = this.#groups.some(({ element }) => !element.hidden);
    if (this.#cells.get(this.#current ?? -1)?.element.hidden ?? true) this.#enter(this.#shown()[0]);
  }

  /** Marks a node id as the selected one, and the ids whose holders know its version. */
  select(id: number | undefined, knowledge: Knowledge | undefined): void {
    this.#cells.get(this.#selected ?? -1)?.element.setAttribute('aria-selected', 'false');
    this.#cells.get(id ?? -1)?.element.setAttribute('aria-selected', 'true');
    this.#selected = id;
    setData(this.#root, 'knowing', knowledge === undefined ? undefined : '');
    for (const cell of this.#cells.values()) cell.showKnown(knowledge?.others);
  }

  /** Draws the eye to a node id. */
  flash(id: number, kind: string): void {
    const element = this.#cells.get(id)?.element;
    if (element === undefined) return;
    delete element.dataset.flash;
    // The animation begins anew only when the browser has seen the cell without it.
    void element.offsetWidth;
    element.dataset.flash = kind;
  }

  note(id: number, text: string): void {
    this.#cells.get(id)?.note(text);
  }

  /** Brings a node id into sight, and gives it the focus. */
  focus(id: number): void {
    const cell = this.#cells.get(id);
    if (cell === undefined) return;
    cell.element.scrollIntoView({ block: 'nearest' });
    cell.element.focus({ preventScroll: true });
  }

  /** Gives the focus to the cell that last had it. */
  focusCurrent(): void {
    if (this.#current !== undefined) this.focus(this.#current);
  }

  #build(): void {
    const { nodes } = this.model;
    const hadFocus = this.#root.contains(document.activeElement);
    this.density = nodes.length <= MAX_CARDS ? 'cards' : nodes.length <= MAX_TILES ? 'tiles' : 'dots';
    this.#root.dataset.density = this.density;
    this.#cells = new Map(nodes.map(({ node }) => [node.id, new Cell(node.id, this.density)]));
    const byGroup = new Map<number, Cell[]>();
    for (const cell of this.#cells.values()) {
      const number = this.density === 'cards' ? 0 : Math.floor(cell.id / GROUP);
      byGroup.set(number, [...(byGroup.get(number) ?? []), cell]);
    }
    this.#groups = [...byGroup].map(
      ([number, cells]) => new IdGroup(number * GROUP, cells, byGroup.size > 1),
    );
    this.#root.replaceChildren(...this.#groups.map(({ element }) => element), this.#none);
    this.#root.hidden = nodes.length === 0;
    this.#cells.get(this.#selected ?? -1)?.element.setAttribute('aria-selected', 'true');
    const current = this.#cells.get(this.#current ?? -1) ?? this.#cells.values().next().value;
    this.#enter(current);
    if (hadFocus) current?.element.focus({ preventScroll: true });
  }

  #look(seen: SeenNode): CellLook {
    const { cluster, graceMs } = this.model;
    return {
      node: seen.node,
      ...this.model.look(seen),
      durationMs: cluster?.cluster?.durationMs ?? 0,
      graceMs,
    };
  }

  #shown(): Cell[] {
    return [...this.#cells.values()].filter(({ element }) => !element.hidden);
  }

  /** Makes a cell the one that Tab leads to. */
  #enter(cell: Cell | undefined): void {
    this.#cells.get(this.#current ?? -1)?.element.setAttribute('tabindex', '-1');
    this.#current = cell?.id;
    cell?.element.setAttribute('tabindex', '0');
  }

  #click({ target }: Event): void {
    const id = idAt(target);
    if (id === undefined) return;
    this.#cells.get(id)?.element.focus({ preventScroll: true });
    this.onSelect(id === this.#selected ? undefined : id);
  }

  #focused({ target }: Event): void {
    const id = idAt(target);
    if (id !== undefined) this.#enter(this.#cells.get(id));
  }

  #key(event: KeyboardEvent): void {
    if (event.altKey || event.ctrlKey || event.metaKey) return;
    const isChoice = event.key === 'Enter' || event.key === ' ';
    const next = isChoice ? this.#cells.get(this.#current ?? -1) : this.#step(event.key);
    if (next === undefined) return;
    event.preventDefault();
    if (!isChoice) this.focus(next.id);
    // With the details open they follow the focus, so that one can read along.
    if (isChoice || this.#selected !== undefined) this.onSelect(next.id);
  }

  /** Where a key leads to from the cell that has the focus. */
  #step(key: string): Cell | undefined {
    const shown = this.#shown();
    const index = shown.findIndex(({ id }) => id === this.#current);
    if (index < 0) return undefined;
    const from = this.#current ?? 0;
    const steps: Readonly<Record<string, () => Cell | undefined>> = {
      ArrowRight: () => shown[index + 1],
      ArrowLeft: () => shown[index - 1],
      ArrowDown: () => below(shown.slice(index), 1),
      ArrowUp: () => below(shown.slice(0, index + 1).reverse(), -1),
      PageDown: () => shown.find(({ id }) => id >= from + GROUP) ?? shown.at(-1),
      PageUp: () => [...shown].reverse().find(({ id }) => id <= from - GROUP) ?? shown[0],
      Home: () => shown[0],
      End: () => shown.at(-1),
    };
    return steps[key]?.();
  }
}

/** The cell of the next row that is nearest to the first one; the rows follow in the direction `sign`. */
function below([from, ...cells]: readonly Cell[], sign: 1 | -1): Cell | undefined {
  const start = from?.element.getBoundingClientRect();
  let best: { readonly cell: Cell; readonly top: number; readonly distance: number } | undefined;
  for (const cell of start ? cells : []) {
    const { left, top } = cell.element.getBoundingClientRect();
    if (start === undefined || (top - start.top) * sign < 2) continue;
    if (best !== undefined && Math.abs(top - best.top) > 2) break;
    const distance = Math.abs(left - start.left);
    if (best === undefined || distance < best.distance) best = { cell, top, distance };
  }
  return best?.cell;
}

function idAt(target: EventTarget | null): number | undefined {
  const id = target instanceof Element ? target.closest<HTMLElement>('.cell')?.dataset.id : undefined;
  return id === undefined ? undefined : Number(id);
}
