import type { ClusterModel } from '../cluster-model.js';
import { formatDuration } from '../format.js';
import type { PageClock } from '../page-clock.js';
import type { WireConfiguration, WireContender, WireEntry, WireLock, WireTree } from '../wire.js';
import { button, find, make, mark, quiet, setText, title } from './dom.js';

/** Announcements of one folder that are listed. */
const MAX_LISTED = 40;
/** Folders of one level that are listed. */
const MAX_BRANCHES = 200;
/** A folder with more of them is closed at first. */
const MAX_OPEN = 12;

/**
 * The discovery tree: nodes, services and endpoints as ZooKeeper has them, the locks that are followed, and
 * who runs which configuration.
 */
export class TreePanel {
  readonly #root = find('tree');
  /** Whether the folders were open when they were last drawn anew, by their keys. */
  #wasOpen = new Map<string | undefined, boolean>();
  #shown = '';

  constructor(
    private readonly model: ClusterModel,
    private readonly onSelect: (id: number) => void,
    private readonly clock: PageClock,
  ) {}

  /** Draws it anew where it is another one; the keyboard focus stays where it is. */
  show(): void {
    const { tree, cluster } = this.model;
    const isExpected = cluster?.discovery != null;
    const shown = JSON.stringify([{ ...tree, data: undefined }, tree === null, isExpected]);
    if (shown === this.#shown) return;
    this.#shown = shown;
    const focused = this.#root.querySelector<HTMLElement>(':focus')?.dataset.key;
    this.#wasOpen = new Map(
      [...this.#root.querySelectorAll('details')].map(({ dataset, open }) => [dataset.folder, open]),
    );
    const none = isExpected
      ? 'It cannot be read: ZooKeeper does not answer.'
      : 'No ZooKeeper: this console was started without one.';
    this.#root.replaceChildren(
      title('Discovery tree'),
      ...(tree === null ? [quiet(none)] : this.#draw(tree)),
    );
    if (focused !== undefined)
      this.#root.querySelector<HTMLElement>(`[data-key="${CSS.escape(focused)}"]`)?.focus();
    this.tick();
  }

  /** Lets the ages run, while what is shown is fresh. */
  tick(): void {
    if (this.model.staleSince !== undefined) return;
    const ages = this.#root.querySelectorAll<HTMLElement>('[data-since]');
    for (const age of ages) setText(age, formatDuration(this.clock.now() - Number(age.dataset.since)));
  }

  #draw({
    zookeeper,
    exists,
    nodes,
    services,
    endpoints,
    foreign,
    locks,
    configurations,
  }: WireTree): HTMLElement[] {
    const where = quiet(make('code', {}, zookeeper));
    const ofLocks = locks?.slice(0, MAX_BRANCHES).map((lock) => this.#lock(lock)) ?? [
      quiet('They cannot be read.'),
    ];
    const below =
      locks === undefined ? [] : [this.#branch('locks', 'locks', ofLocks, true, locks?.length ?? 0)];
    const ofConfigurations =
      configurations?.slice(0, MAX_BRANCHES).map((each) => this.#configuration(each)) ?? [];
    if (configurations === null) below.push(quiet('The configurations cannot be read.'));
    if (configurations?.length)
      below.push(this.#branch('config', 'configuration', ofConfigurations, true, configurations.length));
    if (!exists) return [where, quiet('There is nothing in it yet.'), ...below];
    const ofServices = services
      .slice(0, MAX_BRANCHES)
      .map(({ service, nodes }) =>
        this.#folder(`s/${service}`, service, nodes, nodes.length <= MAX_OPEN && services.length === 1),
      );
    const ofEndpoints = endpoints.slice(0, MAX_BRANCHES).map(({ endpoint, keys }) => {
      const ofKeys = keys
        .slice(0, MAX_BRANCHES)
        .map(({ key, refs }) =>
          this.#folder(`e/${endpoint}/${key}`, key === '_' ? 'no key' : key, refs, false),
        );
      return this.#branch(`e/${endpoint}`, endpoint, ofKeys, false, keys.length);
    });
    const drawn = [where, this.#folder('nodes', 'nodes', nodes, nodes.length <= MAX_OPEN)];
    if (services.length > 0)
      drawn.push(this.#branch('services', 'services', ofServices, true, services.length));
    if (endpoints.length > 0)
      drawn.push(this.#branch('endpoints', 'endpoints', ofEndpoints, false, endpoints.length));
    if (foreign.length > 0)
      drawn.push(
        quiet(`${foreign.length} znodes that do not belong here: ${foreign.slice(0, 5).join(', ')}`),
      );
    return [...drawn, ...below];
  }

  /** Announcements, as the ids that they are of. */
  #folder(key: string, name: string, entries: readonly WireEntry[], isOpen: boolean): HTMLElement {
    const listed = entries.slice(0, MAX_LISTED).map((entry) => this.#entry(entry));
    const more = entries.length - listed.length;
    const rest = more > 0 && make('li', { class: 'quiet' }, `and ${more} more`);
    return this.#details(
      key,
      name,
      [make('ul', { class: 'entries' }, ...listed, rest)],
      isOpen,
      entries.length,
    );
  }

  /** A lock: its holders, and after them the waiting tasks in the order of their turns. */
  #lock({ path, kind, holders, waiting }: WireLock): HTMLElement {
    const entry = ({ data, token, since }: WireContender, at: number) => {
      const age = make('span', { 'data-since': String(since) });
      const told = make(
        'span',
        { class: 'entry-told quiet' },
        at < holders.length ? `token ${token}, ` : 'waiting, ',
        age,
      );
      return make('li', {}, make('span', { class: 'id-chip' }, data || 'no name'), told);
    };
    const count = holders.length + waiting.length;
    const listed = [...holders, ...waiting].slice(0, MAX_LISTED).map(entry);
    const more = count > listed.length && make('li', { class: 'quiet' }, `and ${count - listed.length} more`);
    return this.#details(
      `l/${path}`,
      `${path} (${kind})`,
      [make('ul', { class: 'entries' }, ...listed, more)],
      count <= MAX_OPEN,
      count,
    );
  }

  /** A configuration: which revision each node runs, the late ones first. */
  #configuration({ context, revisions, nodes }: WireConfiguration): HTMLElement {
    const isBehind = ({ behind }: WireConfiguration['nodes'][number]) => behind.length > 0;
    const late = nodes.filter(isBehind);
    const listed = [...late, ...nodes.filter((node) => !isBehind(node))]
      .slice(0, MAX_LISTED)
      .map(({ nodeId, revisions: own, behind }) => {
        const attributes = {
          class: 'id-chip',
          'aria-label': `Show node id ${nodeId}`,
          'data-key': `c/${context}/${nodeId}`,
        };
        const told = make('span', { class: 'entry-told' }, `revision ${own[context] ?? 0}`);
        const bad =
          behind.length > 0 &&
          make('span', { class: 'bad' }, mark('damaged'), ` behind in ${behind.join(' ')}`);
        return make(
          'li',
          {},
          button(attributes, () => this.onSelect(nodeId), String(nodeId)),
          told,
          bad,
        );
      });
    const more =
      nodes.length > listed.length &&
      make('li', { class: 'quiet' }, `and ${nodes.length - listed.length} more`);
    const name = `${context}, revision ${revisions[context] ?? 0}: ${late.length} of ${nodes.length} behind`;
    return this.#details(
      `c/${context}`,
      name,
      [make('ul', { class: 'entries' }, ...listed, more)],
      late.length > 0,
      nodes.length,
    );
  }

  /** Folders, of which there may be more than are drawn. */
  #branch(
    key: string,
    name: string,
    folders: readonly HTMLElement[],
    isOpen: boolean,
    count: number,
  ): HTMLElement {
    const more = count - folders.length;
    return this.#details(
      key,
      name,
      more > 0 ? [...folders, quiet(`and ${more} more`)] : folders,
      isOpen,
      count,
    );
  }

  #details(
    key: string,
    name: string,
    children: readonly HTMLElement[],
    isOpen: boolean,
    count: number,
  ): HTMLElement {
    const summary = make(
      'summary',
      { 'data-key': key },
      make('span', {}, name),
      make('span', { class: 'count' }, String(count)),
    );
    const details = make('details', { class: 'branch', 'data-folder': key }, summary, ...children);
    details.open = this.#wasOpen.get(key) ?? isOpen;
    return details;
  }

  #entry({ path, nodeId, version, taskId, address, port, problem }: WireEntry): HTMLElement {
    const where = address === null ? taskId : `${address}${port === null ? '' : `:${port}`}`;
    const told = make(
      'span',
      { class: 'entry-told' },
      version !== null && make('span', { class: 'quiet' }, `v${version} `),
      where,
    );
    const bad = problem !== null && make('span', { class: 'bad' }, problem);
    if (nodeId === null)
      return make(
        'li',
        { title: path },
        make('span', { class: 'id-chip' }, path.split('/').at(-1) ?? path),
        told,
        bad,
      );
    const attributes = { class: 'id-chip', 'aria-label': `Show node id ${nodeId}`, 'data-key': path };
    const show = button(attributes, () => this.onSelect(nodeId), String(nodeId));
    return make('li', { title: path }, show, told, bad && mark('damaged'), bad);
  }
}
