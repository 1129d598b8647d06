import type { WireDataEntry, WireDatum, WireTree } from '../wire.js';
import { button, type Child, find, make, setText } from './dom.js';
import { type Folder, Folders, type RowCells } from './folders.js';

/** A collection with more entries is closed at first. */
const MAX_OPEN = 12;

/** Asks the server for a change of one entry. Resolves to what is to be said of it. */
export type EditData = (request: RequestInit) => Promise<string>;

/** An entry, and what it stands in. */
interface Row extends WireDataEntry {
  readonly root: string;
  readonly datum: Pick<WireDatum, 'name' | 'scope' | 'kind' | 'lifespan'>;
}

/**
 * Monastery's shared data, where it is followed: each datum by its name, with its entries, their types and
 * owners.
 */
export class DataPanel {
  readonly #root = find('data');
  readonly #folders = new Folders(find('data-list'), ['Key', 'Value', 'Type', 'Owner', ''], (row: Row) =>
    this.#cells(row),
  );

  /** @param edit what it changes the data by, where it may: asked for each row that is drawn */
  constructor(private readonly edit: () => EditData | undefined) {
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
    setText(
      find('data-sum'),
      `${folders.length} data with ${entries} entries at ${where}.${this.edit() ? '' : ' Read-only.'}`,
    );
  }

  #cells(row: Row): RowCells {
    const { path, key, scalar, place, owner, node, problem } = row;
    const keyText = key?.value ?? (scalar === null ? path.slice(path.lastIndexOf('/') + 1) : '');
    const collides = place !== null && place > 0 && quietSpan(`collides: place ${place} `);
    const cells = [
      [keyText, key !== null && key.type !== 'String' && key.type !== 'Integer' && quietSpan(` ${key.type}`)],
      [scalar?.value],
      [scalar?.type],
      [node ?? owner],
      [collides, problem !== null && make('span', { class: 'bad' }, problem), ...this.#tools(row)],
    ];
    return { attributes: {}, cells };
  }

  /** An ephemeral entry is its node's. */
  #tools({
    root,
    datum: { name, scope, kind, lifespan },
    path,
    key,
    scalar,
    version: ifVersion,
  }: Row): Child[] {
    const edit = this.edit();
    if (edit === undefined || lifespan !== 'persistent' || scalar === null) return [];
    const named = key ?? scalar;
    const what = kind === 'scalar' ? name : `${named.value} of ${name}`;
    const ask = async (method: 'PUT' | 'DELETE', facts: object) =>
      setText(
        find('data-notice'),
        await edit({ method, body: JSON.stringify({ root, name, scope, kind, ifVersion, ...facts }) }),
      );
    const set = () => {
      const value = prompt(`${what}: the new text of the ${scalar.type}`, scalar.value);
      if (value !== null) void ask('PUT', { key, value: { type: scalar.type, value } });
    };
    const remove = () => void (confirm(`Remove ${what} for all nodes?`) && ask('DELETE', { entry: named }));
    const tool = (act: string, run: () => void) =>
      button({ 'aria-label': `${act} ${what}`, 'data-key': `${act} ${path}` }, run, act);
    return [
      (kind === 'scalar' || kind === 'map') && tool('Change', set),
      ' ',
      kind !== 'scalar' && tool('Remove', remove),
    ];
  }
}

function folderOf(
  root: string,
  { name, scope, kind, lifespan, path, size, entries, problem }: WireDatum,
): Folder<Row> {
  return {
    key: root + path,
    title: name ?? path,
    note: [scope ? `of scope ${scope}` : '', lifespan, kind ?? 'unknown'].filter(Boolean).join(' '),
    problem,
    count: String(size),
    rows: new Map(
      entries.map((entry) => [entry.path, { ...entry, root, datum: { name, scope, kind, lifespan } }]),
    ),
    more: size - entries.length,
    isOpenAtFirst: size <= MAX_OPEN && kind !== null,
  };
}

function quietSpan(text: string): HTMLElement {
  return make('span', { class: 'quiet' }, text);
}
