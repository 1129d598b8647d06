import { type Child, make, mark, setText } from './dom.js';

/** Rows under a heading that can be closed. */
export interface Folder<R> extends Heading {
  readonly key: string;
  /** By their keys, in their order. */
  readonly rows: ReadonlyMap<string, R>;
  /** How many more there are than these. */
  readonly more: number;
  readonly isOpenAtFirst: boolean;
}

interface Heading {
  readonly title: string;
  readonly note: string;
  readonly problem: string | null;
  readonly count: string;
}

/** How a row is drawn. */
export interface RowCells {
  readonly attributes: Readonly<Record<string, string>>;
  /** What stands in them; one for each column. */
  readonly cells: readonly (readonly Child[])[];
}

interface DrawnFolder<R> {
  readonly details: HTMLDetailsElement;
  readonly summary: HTMLElement;
  readonly body: HTMLElement;
  readonly rest: HTMLElement;
  isOpenAtFirst: boolean;
  rows: ReadonlyMap<string, { readonly row: R; readonly element: HTMLElement }>;
}

/**
 * Folders of rows that change while one looks at them, and can be filtered. A row is drawn anew only where
 * its JSON is another one.
 */
export class Folders<R> {
  #drawn: ReadonlyMap<string, DrawnFolder<R>> = new Map();
  #words: readonly string[] = [];

  /** @param columns their headings */
  constructor(
    private readonly root: HTMLElement,
    private readonly columns: readonly string[],
    private readonly cells: (row: R, key: string) => RowCells,
  ) {}

  /** Draws what is different. What the reader has opened stays open, and the keyboard focus where it is. */
  show(folders: readonly Folder<R>[]): void {
    const focused = document.activeElement?.closest<HTMLElement>('[data-key]')?.dataset.key;
    const drawn = folders.map((folder): [string, DrawnFolder<R>] => {
      const known = this.#drawn.get(folder.key) ?? this.#open(folder);
      this.#draw(folder, known);
      return [folder.key, known];
    });
    this.#drawn = new Map(drawn);
    const elements = drawn.map(([, { details }]) => details);
    arrange(this.root, elements);
    this.#applyFilter();
    if (focused !== undefined && document.activeElement === document.body)
      this.root.querySelector<HTMLElement>(`[data-key="${CSS.escape(focused)}"]`)?.focus();
  }

  /**
   * Shows the rows that contain all words of a text, themselves or with their headings, in folders that are
   * open; all rows where it has no words.
   */
  filter(text: string): void {
    this.#words = text.toLowerCase().split(/\s+/).filter(Boolean);
    for (const { details, isOpenAtFirst } of this.#drawn.values())
      details.open = this.#words.length > 0 || isOpenAtFirst;
    this.#applyFilter();
  }

  #open({ isOpenAtFirst }: Folder<R>): DrawnFolder<R> {
    const head = make('tr', {}, ...this.columns.map((text) => make('th', { scope: 'col' }, text)));
    const summary = make('summary');
    const body = make('tbody');
    const rest = make('p', { class: 'quiet' });
    const details = make(
      'details',
      { class: 'branch' },
      summary,
      make('table', {}, make('thead', {}, head), body),
      rest,
    );
    details.open = isOpenAtFirst || this.#words.length > 0;
    return { details, summary, body, rest, isOpenAtFirst, rows: new Map() };
  }

  #draw({ rows, more, isOpenAtFirst, ...heading }: Folder<R>, drawn: DrawnFolder<R>): void {
    const { summary, body, rest, rows: before } = drawn;
    const now = headingOf(heading);
    if (now.textContent !== summary.textContent) summary.replaceChildren(now);
    setText(rest, more > 0 ? `and ${more} more` : '');
    drawn.isOpenAtFirst = isOpenAtFirst;
    const entries = [...rows].map(([key, row]) => {
      const known = before.get(key);
      const isSame = known && (known.row === row || JSON.stringify(known.row) === JSON.stringify(row));
      return [key, isSame ? known : { row, element: this.#row(key, row, before.size > 0) }] as const;
    });
    drawn.rows = new Map(entries);
    const elements = entries.map(([, { element }]) => element);
    arrange(body, elements);
  }

  #row(key: string, row: R, isNew: boolean): HTMLElement {
    const { attributes, cells } = this.cells(row, key);
    return make(
      'tr',
      { title: key, ...attributes, ...(isNew && { 'data-new': '' }) },
      ...cells.map((cell) => make('td', {}, ...cell)),
    );
  }

  #applyFilter(): void {
    for (const { details, summary, rows } of this.#drawn.values()) {
      const isWhole = contains([summary], this.#words);
      let isShown = isWhole;
      for (const { element } of rows.values()) {
        element.hidden = !isWhole && !contains([summary, ...element.children], this.#words);
        isShown ||= !element.hidden;
      }
      details.hidden = !isShown;
    }
  }
}

function headingOf({ title, note, problem, count }: Heading): DocumentFragment {
  const heading = document.createDocumentFragment();
  const bad = problem === null ? [] : [make('span', { class: 'bad' }, mark('damaged'), ` ${problem}`)];
  const quiet = note === '' ? [] : [make('span', { class: 'quiet' }, note)];
  heading.append(title, ' ', ...quiet, ...bad, ' ', make('span', { class: 'count' }, count));
  return heading;
}

/** Whether each of the words stands in one of the elements: a text does not go on in the next one. */
function contains(elements: readonly Element[], words: readonly string[]): boolean {
  if (words.length === 0) return true;
  const texts = elements.map(({ textContent }) => textContent.toLowerCase());
  return words.every((word) => texts.some((text) => text.includes(word)));
}

/**
 * Gives an element these children in this order, and moves none that stands right: one that is moved loses
 * the keyboard focus.
 */
function arrange(parent: HTMLElement, children: readonly HTMLElement[]): void {
  const wanted = new Set<Element>(children);
  for (const child of [...parent.children]) if (!wanted.has(child)) child.remove();
  let at = parent.firstElementChild;
  for (const child of children) {
    if (child === at) at = at.nextElementSibling;
    else parent.insertBefore(child, at);
  }
}
