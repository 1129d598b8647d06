import type { WireDataEntry, WireDatum, WireTree } from '../wire.js';
import { find, make, setText } from './dom.js';
import { type Folder, Folders, type RowCells } from './folders.js';

/** A collection with more entries is closed at first. */
const MAX_OPEN = 12;

/** Monastery's shared data, where it is followed: each datum by its name, with its entries, their types and owners. */
export class DataPanel {
  readonly #root = find('data');
  readonly #folders = new Folders(find('data-list'), ['Key', 'Value', 'Type', 'Owner', ''], cellsOf);

  constructor() {
    const filter = find('data-text', HTMLInputElement);
    filter.addEventListener('input', () => this.#folders.filter(filter.value));
  }

  /** Draws what is different; what the reader has opened stays open. */
  show(tree: WireTree | null): void {
    // Without ZooKeeper's answer it is not known either whether any data is followed.
    if (tree !== null) this.#root.hidden = tree.data === undefined;
    const told = tree?.data;
    if (!told) {
      setText(find('data-sum'), 'It cannot be read at present.');
      return;
    }
    const folders = told.flatMap(({ root, data }) => data.map((datum) => folderOf(root, datum)));
    this.#folders.show(folders);
    const entries = told.flatMap(({ data }) => data).reduce((sum, { size }) => sum + size, 0);
    const where = told.map(({ root, zookeeper }) => `${root} of ${zookeeper}`).join(', ');
    setText(find('data-sum'), `${folders.length} data with ${entries} entries at ${where}. Read-only.`);
  }
}

function folderOf(root: string, { name, scope, kind, lifespan, path, size, entries, problem }: WireDatum): Folder<WireDataEntry> {
  return {
    key: root + path,
    title: name ?? path,
    note: [scope ? `of scope ${scope}` : '', lifespan, kind ?? 'unknown'].filter(Boolean).join(' '),
    problem,
    count: String(size),
    rows: new Map(entries.map((entry) => [entry.path, entry])),
    more: size - entries.length,
    isOpenAtFirst: size <= MAX_OPEN && kind !== null,
  };
}

function cellsOf({ path, key, scalar, place, owner, node, problem }: WireDataEntry): RowCells {
  const keyText = key?.value ?? (scalar === null ? path.slice(path.lastIndexOf('/') + 1) : '');
  const collides = place !== null && place > 0 && quietSpan(`collides: place ${place} `);
  const cells = [
    [keyText, key !== null && key.type !== 'String' && key.type !== 'Integer' && quietSpan(` ${key.type}`)],
    [scalar?.value],
    [scalar?.type],
    [node ?? owner],
    [collides, problem !== null && make('span', { class: 'bad' }, problem)],
  ];
  return { attributes: {}, cells };
}

function quietSpan(text: string): HTMLElement {
  return make('span', { class: 'quiet' }, text);
}
