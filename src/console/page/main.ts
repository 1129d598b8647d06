import { ClusterModel } from '../cluster-model.js';
import { eventAgo } from '../format.js';
import { knowledgeOf } from '../knowledge.js';
import { type NodeState, parseFilter } from '../node-state.js';
import { browserClock, type PageClock } from '../page-clock.js';
import type { WireEvent } from '../wire.js';
import { DataPanel } from './data-panel.js';
import { DetailsPanel } from './details-panel.js';
import { find, setData, setText } from './dom.js';
import { EventList } from './event-list.js';
import { Frame } from './frame.js';
import { IdGrid } from './id-grid.js';
import { InstancePanel, StorePanel } from './status-panels.js';
import { Summary } from './summary.js';
import { TreePanel } from './tree-panel.js';

/** What is told aloud: who comes and who goes is, what happens all the time is not. */
const SPOKEN = new Set([
  'taken-over',
  'overdue',
  'evicted',
  'damaged',
  'version-repeated',
  'resized',
  'store-failed',
  'store-ok',
]);

/** The page of the node ids: draws what the stream tells. */
class Console {
  readonly #clock: PageClock = browserClock;
  readonly #model = new ClusterModel(this.#clock);
  readonly #grid = new IdGrid(this.#model, (id) => this.#select(id));
  readonly #details = new DetailsPanel(
    this.#model,
    () => this.#closeDetails(),
    (id) => this.#showNode(id),
  );
  readonly #events = new EventList((id) => this.#showNode(id));
  readonly #store = new StorePanel(this.#model);
  readonly #instance = new InstancePanel(this.#model, (id) => this.#showNode(id));
  readonly #tree = new TreePanel(this.#model, (id) => this.#showNode(id), this.#clock);
  readonly #data = new DataPanel(() =>
    this.#model.writesData ? (request) => this.#frame.change('api/data', request) : undefined,
  );
  readonly #summary = new Summary(this.#model, (state) => this.#filterByState(state));
  readonly #frame = new Frame({
    stream: 'api/events',
    what: 'the leases',
    model: this.#model,
    draw: () => this.#draw(),
    onFilter: (text) => this.#filterBy(text),
    focusFound: () => this.#grid.focusCurrent(),
    onEscape: () => this.#clear(),
  });
  #selected: number | undefined;
  /** The last thing that happened to each node id. */
  readonly #last = new Map<number, WireEvent>();

  /** Goes on while the page is open. */
  start(): void {
    this.#frame.start();
  }

  #draw(): void {
    const { events, reset, parts } = this.#model.takeChanges();
    if (parts.has('nodes')) this.#drawNodes();
    if (events.length > 0 || reset) this.#drawEvents(events, reset);
    if (parts.has('store') || parts.has('cluster') || parts.has('tree')) this.#store.show();
    if (parts.has('instance')) this.#instance.show();
    if (this.#model.hasServices) this.#frame.link('services', 'Services');
    if (parts.has('tree') || parts.has('cluster')) this.#tree.show();
    if (parts.has('tree')) this.#data.show(this.#model.tree);
    if (this.#grid.tick()) this.#summary.show();
    this.#details.tick();
    this.#instance.tick();
    this.#tree.tick();
    this.#noteTimes();
  }

  #drawNodes(): void {
    this.#grid.update();
    const density = this.#model.nodes.length === 0 ? 'none' : this.#grid.density;
    if (document.documentElement.dataset.layout !== density) this.#layOut(density);
    const held = this.#summary.show().get('held') ?? 0;
    this.#showEmpty();
    this.#showSelected();
    document.title =
      this.#model.nodes.length > 0 ? `${held}/${this.#model.nodes.length} held · nodelease` : 'nodelease';
  }

  /**
   * The events stand below the node ids while there are few of those, and beside them where there are many.
   */
  #layOut(density: string): void {
    setData(document.documentElement, 'layout', density);
    if (density === 'cards' || density === 'none') find('data').before(find('events'));
    else find('tree').before(find('events'));
  }

  #drawEvents(events: readonly WireEvent[], reset: boolean): void {
    this.#events.add(events, reset);
    if (reset) this.#last.clear();
    for (const event of events) {
      if (event.nodeId !== null) this.#last.set(event.nodeId, event);
      if (reset) continue;
      if (event.nodeId !== null) this.#grid.flash(event.nodeId, event.kind);
      if (SPOKEN.has(event.kind)) this.#frame.announcer.say(event.text);
    }
  }

  /** On a card: how the id came to its holder, and how long ago. */
  #noteTimes(): void {
    if (this.#grid.density !== 'cards') return;
    for (const { node } of this.#model.nodes) {
      const event = this.#last.get(node.id);
      const warning = node.camunda?.warning;
      if (warning) this.#grid.note(node.id, warning);
      if (event === undefined || warning) continue;
      const from = event.previousTaskId === null ? '' : ` from ${event.previousTaskId}`;
      const told =
        event.kind === 'taken-over' && event.version === node.version
          ? `taken over${from}`
          : event.kind.replace('-', ' ');
      this.#grid.note(node.id, `${told}, ${eventAgo(event, this.#clock.now())}`);
    }
  }

  #showEmpty(): void {
    const { cluster, nodes, store, isKnown } = this.#model;
    const empty = find('empty');
    empty.hidden = nodes.length > 0;
    if (!isKnown) return;
    const where = cluster?.store ?? 'this store';
    const none = `There is no cluster at ${where} yet. The first task creates it, or: nodelease init --nodes N`;
    const isUnread = cluster === null || store.state === 'unknown';
    setText(empty, isUnread ? 'The leases have not been read yet.' : none);
  }

  #select(id: number | undefined): void {
    this.#selected = id;
    this.#showSelected();
  }

  /** Selects a node id that was named somewhere else than in the grid. */
  #showNode(id: number): void {
    if (this.#model.node(id) === undefined) return;
    this.#frame.filter = '';
    this.#select(id);
    this.#grid.focus(id);
  }

  #showSelected(): void {
    const seen = this.#selected === undefined ? undefined : this.#model.node(this.#selected);
    const all = this.#model.nodes.map(({ node }) => node);
    const knowledge = seen && knowledgeOf(seen.node, all);
    this.#details.show(seen, knowledge);
    this.#grid.select(seen?.node.id, knowledge);
    setData(document.documentElement, 'details', seen === undefined ? undefined : '');
  }

  #closeDetails(): void {
    this.#select(undefined);
    this.#grid.focusCurrent();
  }

  /** What Escape does: closes the details, else takes the filter away. */
  #clear(): void {
    if (this.#selected !== undefined) this.#closeDetails();
    else if (this.#frame.filter !== '') {
      this.#frame.filter = '';
      this.#grid.focusCurrent();
    }
  }

  #filterByState(state: NodeState): void {
    const isOn = this.#frame.filter.trim() === state;
    this.#frame.filter = isOn ? '' : state;
    this.#summary.press(isOn ? undefined : state);
  }

  #filterBy(text: string): void {
    this.#summary.press(undefined);
    this.#grid.filter(parseFilter(text));
  }
}

new Console().start();
