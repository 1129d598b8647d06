import { ClusterModel } from '../cluster-model.js';
import type { StreamEvent } from '../event-stream.js';
import type { FeedState } from '../feed.js';
import { formatDuration } from '../format.js';
import { knowledgeOf } from '../knowledge.js';
import { type NodeState, parseFilter } from '../node-state.js';
import type { PageClock } from '../page-clock.js';
import type { WireEvent } from '../wire.js';
import { ConnectionBadge } from './connection-badge.js';
import { Keyboard, ThemeSwitch } from './controls.js';
import { DetailsPanel } from './details-panel.js';
import { find, setData, setText } from './dom.js';
import { Announcer, EventList } from './event-list.js';
import { IdGrid } from './id-grid.js';
import { InstancePanel, StorePanel } from './status-panels.js';
import { Summary } from './summary.js';
import { TokenDialog } from './token-dialog.js';
import { TreePanel } from './tree-panel.js';

/** What is told aloud: who comes and who goes is, what happens all the time is not. */
const SPOKEN = new Set(['taken-over', 'overdue', 'evicted', 'damaged', 'resized', 'store-failed', 'store-ok']);

/** From one drawing to the next at least, in milliseconds. */
const DRAW_MS = 100;

/** The page: takes in what the stream tells, and draws it, ten times a second at most. */
export class Console {
  readonly #model: ClusterModel;
  readonly #grid: IdGrid;
  readonly #details: DetailsPanel;
  readonly #events: EventList;
  readonly #store: StorePanel;
  readonly #instance: InstancePanel;
  readonly #tree: TreePanel;
  readonly #summary: Summary;
  readonly #badge: ConnectionBadge;
  readonly #announcer: Announcer;
  readonly #token: TokenDialog;
  readonly #filter = find('filter', HTMLInputElement);
  #selected: number | undefined;
  #retry: (token?: string) => void = () => {};
  #wasLive = false;
  /** The last thing that happened to each node id. */
  readonly #last = new Map<number, WireEvent>();

  constructor(private readonly clock: PageClock) {
    const select = (id: number | undefined) => this.#select(id);
    const show = (id: number) => this.#showNode(id);
    const section = (id: string) => find(id, HTMLElement);
    this.#model = new ClusterModel(clock);
    this.#grid = new IdGrid(section('grid'), this.#model, select);
    this.#details = new DetailsPanel(section('details'), this.#model, () => this.#closeDetails(), show);
    this.#events = new EventList(section('event-list'), section('no-events'), show);
    this.#store = new StorePanel(section('store'), this.#model);
    this.#instance = new InstancePanel(section('instance'), this.#model, show);
    this.#tree = new TreePanel(section('tree'), this.#model, show);
    this.#summary = new Summary(section('states'), section('settings'), this.#model, (state) => this.#filterByState(state));
    this.#announcer = new Announcer(section('announcer'), clock);
    this.#token = new TokenDialog((token) => this.#retry(token));
    const retry = section('retry');
    this.#badge = new ConnectionBadge(
      { badge: section('connection'), banner: section('banner'), bannerText: section('banner-text'), retry },
      this.#model,
      clock,
    );
    retry.addEventListener('click', () => this.#retry());
    section('connection').addEventListener('click', () => this.#token.open());
    this.#filter.addEventListener('input', () => this.#applyFilter());
    new ThemeSwitch(find('theme', HTMLButtonElement));
    new Keyboard({ filter: this.#filter, grid: () => this.#grid.focusCurrent(), clear: () => this.#clear() });
    this.#wireEventFilter();
  }

  /** @param retry tries to connect at once, with a token if one is given */
  start(retry: (token?: string) => void): void {
    this.#retry = retry;
    void beat(this.clock, () => this.#draw());
  }

  /** What came from the stream. */
  receive(event: StreamEvent): void {
    this.#model.apply(event);
  }

  /** How the connection is doing now. */
  connection(state: FeedState): void {
    this.#model.connection(state.kind === 'live');
    this.#badge.show(state);
    if (state.kind === 'token') this.#token.ask(state.refused);
    if (state.kind === 'waiting' && this.#wasLive) this.#announcer.say('The connection to the console is lost');
    if (state.kind === 'waiting') this.#wasLive = false;
    if (state.kind === 'live') this.#wasLive = true;
  }

  #draw(): void {
    const { events, reset, parts } = this.#model.takeChanges();
    if (parts.has('nodes')) this.#drawNodes();
    if (events.length > 0 || reset) this.#drawEvents(events, reset);
    if (parts.has('store') || parts.has('cluster')) this.#store.show();
    if (parts.has('instance')) this.#instance.show();
    if (parts.has('tree') || parts.has('cluster')) this.#tree.show();
    if (this.#grid.tick()) this.#summary.show();
    this.#details.tick();
    this.#instance.tick();
    this.#badge.tick();
    this.#noteTimes();
  }

  #drawNodes(): void {
    this.#grid.update();
    const density = this.#model.nodes.length === 0 ? 'none' : this.#grid.density;
    if (document.documentElement.dataset.layout !== density) this.#layOut(density);
    const counts = this.#summary.show();
    this.#showEmpty();
    this.#showSelected();
    const held = counts.get('held') ?? 0;
    document.title = this.#model.nodes.length > 0 ? `${held}/${this.#model.nodes.length} held · nodelease` : 'nodelease';
  }

  /** The events stand below the node ids while there are few of those, and beside them where there are many. */
  #layOut(density: string): void {
    setData(document.documentElement, 'layout', density);
    const events = find('events', HTMLElement);
    if (density === 'cards' || density === 'none') find('left', HTMLElement).append(events);
    else find('tree', HTMLElement).before(events);
  }

  #drawEvents(events: readonly WireEvent[], reset: boolean): void {
    this.#events.add(events, reset);
    if (reset) this.#last.clear();
    for (const event of events) {
      if (event.nodeId !== null) this.#last.set(event.nodeId, event);
      if (reset) continue;
      if (event.nodeId !== null) this.#grid.flash(event.nodeId, event.kind);
      if (SPOKEN.has(event.kind)) this.#announcer.say(event.text);
    }
  }

  /** On a card: how the id came to its holder, and how long ago. */
  #noteTimes(): void {
    if (this.#grid.density !== 'cards') return;
    for (const { node } of this.#model.nodes) {
      const event = this.#last.get(node.id);
      if (event === undefined) continue;
      const ago = formatAgo(this.clock.now() - event.at);
      const from = event.previousTaskId === null ? '' : ` from ${event.previousTaskId}`;
      const told = event.kind === 'taken-over' && event.version === node.version ? `taken over${from}` : event.kind.replace('-', ' ');
      this.#grid.note(node.id, `${told}, ${ago}`);
    }
  }

  #showEmpty(): void {
    const { cluster, nodes, store, isKnown } = this.#model;
    const empty = find('empty', HTMLElement);
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
    this.#filterBy('', undefined);
    this.#select(id);
    this.#grid.focus(id);
  }

  #showSelected(): void {
    const seen = this.#selected === undefined ? undefined : this.#model.node(this.#selected);
    const knowledge =
      seen &&
      knowledgeOf(
        seen.node,
        this.#model.nodes.map(({ node }) => node),
      );
    this.#details.show(seen?.node.id, knowledge);
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
    else if (this.#filter.value !== '') {
      this.#filterBy('', undefined);
      this.#grid.focusCurrent();
    }
  }

  #filterByState(state: NodeState): void {
    const isOn = this.#filter.value.trim() === state;
    this.#filterBy(isOn ? '' : state, isOn ? undefined : state);
  }

  #filterBy(text: string, state: NodeState | undefined): void {
    this.#filter.value = text;
    this.#summary.press(state);
    this.#grid.filter(parseFilter(text));
  }

  #applyFilter(): void {
    this.#summary.press(undefined);
    this.#grid.filter(parseFilter(this.#filter.value));
  }

  #wireEventFilter(): void {
    const kind = find('event-kind', HTMLSelectElement);
    const text = find('event-text', HTMLInputElement);
    const apply = () => this.#events.filter(kind.value, text.value);
    kind.addEventListener('change', apply);
    text.addEventListener('input', apply);
  }
}

/**
 * Calls `draw` up to ten times a second, and not at all while the page is hidden: browsers draw no frames of hidden ones. Whatever came in
 * between is drawn at once with the next frame. What `draw` throws goes to the browser's console, and it goes on.
 */
async function beat(clock: PageClock, draw: () => void): Promise<never> {
  for (;;) {
    await new Promise((resolve) => requestAnimationFrame(resolve));
    try {
      draw();
    } catch (error) {
      reportError(error);
    }
    await clock.sleep(DRAW_MS);
  }
}

function formatAgo(ms: number): string {
  return ms < 1_000 ? 'just now' : `${formatDuration(Math.floor(ms / 1_000) * 1_000).replace('.0 s', ' s')} ago`;
}
