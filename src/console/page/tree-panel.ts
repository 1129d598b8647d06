import type { ClusterModel } from '../cluster-model.js';
import type { WireEntry } from '../wire.js';
import { make, mark } from './dom.js';

/** Announcements of one folder that are listed. */
const MOST_LISTED = 40;
/** Folders of one level that are listed. */
const MOST_BRANCHES = 200;
/** A folder with more of them is closed at first. */
const MOST_OPEN = 12;

/** The discovery tree: nodes, services and endpoints as ZooKeeper has them. */
export class TreePanel {
  /** Those folders that there are, and whether they are open. */
  #open = new Map<string, boolean>();
  /** The ones that are being drawn. */
  #drawn = new Map<string, boolean>();
  #shown = '';

  constructor(
    private readonly root: HTMLElement,
    private readonly model: ClusterModel,
    private readonly onSelect: (id: number) => void,
  ) {}

  /** Draws it anew where it is another one; the keyboard focus stays where it is. */
  show(): void {
    const { tree, cluster } = this.model;
    const shown = JSON.stringify([tree, cluster?.discovery === null || cluster?.discovery === undefined]);
    if (shown === this.#shown) return;
    this.#shown = shown;
    const { activeElement } = document;
    const focused = activeElement instanceof HTMLElement && this.root.contains(activeElement) ? activeElement.dataset.key : undefined;
    this.#draw();
    this.#open = this.#drawn;
    this.#drawn = new Map();
    if (focused === undefined) return;
    for (const each of this.root.querySelectorAll<HTMLElement>('[data-key]')) if (each.dataset.key === focused) each.focus();
  }

  #draw(): void {
    const { tree } = this.model;
    const title = make('div', { class: 'panel-title' }, make('h2', { text: 'Discovery tree' }));
    if (tree === null) {
      const isExpected = this.model.cluster?.discovery !== null && this.model.cluster?.discovery !== undefined;
      const text = isExpected ? 'It cannot be read: ZooKeeper does not answer.' : 'No ZooKeeper: this console was started without one.';
      this.root.replaceChildren(title, make('p', { class: 'quiet', text }));
      return;
    }
    const where = make('p', { class: 'quiet' }, make('code', { text: tree.zookeeper }));
    if (!tree.exists) {
      this.root.replaceChildren(title, where, make('p', { class: 'quiet', text: 'There is nothing in it yet.' }));
      return;
    }
    const services = tree.services
      .slice(0, MOST_BRANCHES)
      .map(({ service, nodes }) => this.#folder(`s/${service}`, service, nodes, nodes.length <= MOST_OPEN && tree.services.length === 1));
    const endpoints = tree.endpoints.slice(0, MOST_BRANCHES).map(({ endpoint, keys }) => {
      const inner = keys
        .slice(0, MOST_BRANCHES)
        .map(({ key, refs }) => this.#folder(`e/${endpoint}/${key}`, key === '_' ? 'no key' : key, refs, false));
      return this.#branch(`e/${endpoint}`, endpoint, inner, false, keys.length);
    });
    this.root.replaceChildren(
      title,
      where,
      this.#folder('nodes', 'nodes', tree.nodes, tree.nodes.length <= MOST_OPEN),
      ...(services.length > 0 ? [this.#branch('services', 'services', services, true, tree.services.length)] : []),
      ...(endpoints.length > 0 ? [this.#branch('endpoints', 'endpoints', endpoints, false, tree.endpoints.length)] : []),
      ...(tree.foreign.length > 0
        ? [
            make('p', {
              class: 'quiet',
              text: `${tree.foreign.length} znodes that do not belong here: ${tree.foreign.slice(0, 5).join(', ')}`,
            }),
          ]
        : []),
    );
  }

  /** Announcements, as the ids that they are of. */
  #folder(key: string, name: string, entries: readonly WireEntry[], isOpen: boolean): HTMLElement {
    const listed = entries.slice(0, MOST_LISTED).map((entry) => this.#entry(entry));
    const more = entries.length - listed.length;
    const rest = more > 0 ? [make('li', { class: 'quiet', text: `and ${more} more` })] : [];
    return this.#details(key, name, [make('ul', { class: 'entries' }, ...listed, ...rest)], isOpen, entries.length);
  }

  /** Folders, of which there may be more than are drawn. */
  #branch(key: string, name: string, folders: readonly HTMLElement[], isOpen: boolean, count: number): HTMLElement {
    const more = count - folders.length;
    const rest = more > 0 ? [make('p', { class: 'quiet', text: `and ${more} more` })] : [];
    return this.#details(key, name, [...folders, ...rest], isOpen, count);
  }

  #details(key: string, name: string, children: readonly HTMLElement[], isOpen: boolean, count: number): HTMLElement {
    const parts = [make('span', { text: name }), make('span', { class: 'count', text: String(count) })];
    const summary = make('summary', { attributes: { 'data-key': key } }, ...parts);
    const details = make('details', { class: 'branch' }, summary, ...children);
    details.open = this.#open.get(key) ?? isOpen;
    this.#drawn.set(key, details.open);
    details.addEventListener('toggle', () => {
      if (this.#open.has(key)) this.#open.set(key, details.open);
    });
    return details;
  }

  #entry({ path, nodeId, version, taskId, address, port, problem }: WireEntry): HTMLElement {
    const where = address === null ? (taskId ?? '') : `${address}${port === null ? '' : `:${port}`}`;
    const told = make(
      'span',
      { class: 'entry-told' },
      ...(version === null ? [] : [make('span', { class: 'quiet', text: `v${version} ` })]),
      where,
    );
    const bad = problem === null ? [] : [make('span', { class: 'bad', text: problem })];
    const label = nodeId === null ? (path.split('/').at(-1) ?? path) : String(nodeId);
    if (nodeId === null) return make('li', { attributes: { title: path } }, make('span', { class: 'id-chip', text: label }), told, ...bad);
    const attributes = { type: 'button', 'aria-label': `Show node id ${nodeId}`, 'data-key': path };
    const button = make('button', { class: 'id-chip', text: label, attributes, onClick: () => this.onSelect(nodeId) });
    return make('li', { attributes: { title: path } }, button, told, ...(problem === null ? [] : [mark('damaged')]), ...bad);
  }
}
