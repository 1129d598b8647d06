import type { WireDataEntry, WireDatum, WireTree } from '../wire.js';
import { button, find, make, mark, quiet, setText } from './dom.js';

/** A collection with more entries is closed at first. */
const MAX_OPEN = 12;

/** What is drawn of one datum. */
interface Drawn {
  readonly json: string;
  readonly element: HTMLDetailsElement;
  /** Its entries as they were last, by their paths. */
  readonly versions: ReadonlyMap<string, string | null>;
}

/** Asks the server for a change of one entry; the answer is shown. */
export type EditData = (method: 'PUT' | 'DELETE', edit: object) => Promise<string>;

/** Monastery's shared data, where it is followed: each datum by its name, with its entries, their types and owners. */
export class DataPanel {
  readonly #root = find('data');
  readonly #list = find('data-list');
  readonly #filter = find('data-text', HTMLInputElement);
  #drawn = new Map<string, Drawn>();

  /** @param edit what it changes the data by, where it may: asked for each row that is drawn */
  constructor(private readonly edit: () => EditData | undefined) {
    this.#filter.addEventListener('input', () => this.#applyFilter());
  }

  /** Draws anew what is another one; what the reader has opened stays open. */
  show(tree: WireTree | null): void {
    // Without ZooKeeper's answer it is not known either whether any data is followed.
    if (tree !== null) this.#root.hidden = tree.data === undefined;
    const told = tree?.data;
    if (!told) {
      setText(find('data-sum'), 'It cannot be read at present.');
      return;
    }
    const before = this.#drawn;
    this.#drawn = new Map(told.flatMap(({ root, data }) => data.map((datum) => this.#draw(root, datum, before.get(root + datum.path)))));
    const elements = [...this.#drawn.values()].map(({ element }) => element);
    for (const { element } of before.values()) if (!elements.includes(element)) element.remove();
    elements.forEach((element, at) => {
      if (this.#list.children[at] !== element) this.#list.insertBefore(element, this.#list.children[at] ?? null);
    });
    const entries = told.flatMap(({ data }) => data).reduce((sum, { size }) => sum + size, 0);
    const where = told.map(({ root, zookeeper }) => `${root} of ${zookeeper}`).join(', ');
    setText(find('data-sum'), `${elements.length} data with ${entries} entries at ${where}.${this.edit() ? '' : ' Read-only.'}`);
    this.#applyFilter();
  }

  #draw(root: string, datum: WireDatum, before: Drawn | undefined): [string, Drawn] {
    const key = root + datum.path;
    const json = JSON.stringify(datum);
    if (before?.json === json) return [key, before];
    const { name, scope, kind, lifespan, path, size, entries, problem } = datum;
    const title = make('span', { title: path }, name ?? path, scope && quietSpan(` of scope ${scope}`));
    const bad = problem !== null && make('span', { class: 'bad' }, mark('damaged'), ` ${problem}`);
    const what = quietSpan(`${lifespan ?? ''} ${kind ?? 'unknown'}`);
    const summary = make('summary', {}, title, ' ', what, bad, ' ', make('span', { class: 'count' }, String(size)));
    const head = make('tr', {}, ...['Key', 'Value', 'Type', 'Owner', ''].map((text) => make('th', { scope: 'col' }, text)));
    const rows = entries.map((entry) => {
      const isNew = before !== undefined && before.versions.get(entry.path) !== entry.version;
      return row(entry, isNew, this.#tools(root, datum, entry));
    });
    const element = make('details', { class: 'branch' }, summary, make('table', {}, make('thead', {}, head), make('tbody', {}, ...rows)));
    if (size > entries.length) element.append(quiet(`and ${size - entries.length} more`));
    element.open = before?.element.open ?? (size <= MAX_OPEN && kind !== null);
    before?.element.replaceWith(element);
    return [key, { json, element, versions: new Map(entries.map(({ path, version }) => [path, version])) }];
  }

  /** An ephemeral entry is its node's. */
  #tools(
    root: string,
    { name, scope, kind, lifespan }: WireDatum,
    { key, scalar, version: ifVersion }: WireDataEntry,
  ): HTMLElement | false {
    const edit = this.edit();
    if (edit === undefined || lifespan !== 'persistent' || scalar === null) return false;
    const named = key ?? scalar;
    const what = kind === 'scalar' ? name : `${named.value} of ${name}`;
    const ask = async (method: 'PUT' | 'DELETE', facts: object) =>
      setText(find('data-notice'), await edit(method, { root, name, scope, kind, ifVersion, ...facts }));
    const set = () => {
      const value = prompt(`${what}: the new text of the ${scalar.type}`, scalar.value);
      if (value !== null) void ask('PUT', { key, value: { type: scalar.type, value } });
    };
    const remove = () => void (confirm(`Remove ${what} for all nodes?`) && ask('DELETE', { entry: named }));
    return make(
      'div',
      { class: 'instance-tools' },
      (kind === 'scalar' || kind === 'map') && button({ 'aria-label': `Change ${what}` }, set, 'Change'),
      kind !== 'scalar' && button({ 'aria-label': `Remove ${what}` }, remove, 'Remove'),
    );
  }

  /** Hides what does not contain the text; a datum whose own name does is shown whole. */
  #applyFilter(): void {
    const text = this.#filter.value.trim().toLowerCase();
    // A text does not go on in the next cell.
    const contains = (element: Element | null) =>
      [...(element?.children ?? [])].some((each) => each.textContent.toLowerCase().includes(text));
    for (const { element } of this.#drawn.values()) {
      const isWhole = contains(element.querySelector('summary'));
      let isShown = isWhole;
      for (const each of element.querySelectorAll<HTMLElement>('tbody tr')) {
        each.hidden = !isWhole && !contains(each);
        isShown ||= !each.hidden;
      }
      element.hidden = !isShown;
    }
  }
}

function row({ path, key, scalar, place, owner, node, problem }: WireDataEntry, isNew: boolean, tools: HTMLElement | false): HTMLElement {
  const keyText = key?.value ?? (scalar === null ? path.slice(path.lastIndexOf('/') + 1) : '');
  const notes = [
    place !== null && place > 0 && quietSpan(`collides: place ${place} `),
    problem !== null && make('span', { class: 'bad' }, problem),
    tools,
  ];
  const cells = [
    [keyText, key !== null && key.type !== 'String' && key.type !== 'Integer' && quietSpan(` ${key.type}`)],
    [scalar?.value],
    [scalar?.type],
    [node ?? owner],
    notes,
  ];
  return make('tr', { title: path, ...(isNew && { 'data-new': '' }) }, ...cells.map((cell) => make('td', {}, ...cell)));
}

function quietSpan(text: string): HTMLElement {
  return make('span', { class: 'quiet' }, text);
}
