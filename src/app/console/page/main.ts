import { h, render } from 'preact';
import type { ClusterEvent, ClusterHistory } from '../../../node/wire/cluster-snapshot.js';
import { type NodeReport, warningOf } from '../../../node/wire/status-report.js';
import { locksPanel } from '../locks/locks-panel.js';
import { ClusterModel, type NodeNow, type SeenNode } from '../model/cluster-model.js';
import { counted, drainingText, eventAgo, formatSetting, shortName } from '../model/format.js';
import { NODE_STATES, type NodeState, STATE_MEANINGS } from '../model/node-state.js';
import { TenureLog } from '../model/timeline.js';
import { browserClock } from '../page-clock.js';
import { shardsPanel } from '../shards/shards-panel.js';
import { DataPanel } from '../shared-data/data-panel.js';
import { ActsPanel } from './acts-panel.js';
import { formatView } from './camunda/camunda-view.js';
import { detailsPanel } from './details-panel.js';
import { type EventFilter, eventList } from './event-list.js';
import { Frame } from './frame.js';
import { type Density, densityOf, flash, focusGrid, focusNode, IdGrid } from './id-grid.js';
import { instancePanel, storePanel } from './status-panels.js';
import { Timeline } from './timeline-panel.js';
import { Now, treePanel } from './tree-panel.js';
import { find, mark, memo, search } from './ui.js';

/** Announced to screen readers: who comes and who goes; not what happens all the time. */
const SPOKEN = new Set<ClusterEvent['kind']>([
  'taken-over',
  'overdue',
  'evicted',
  'damaged',
  'version-repeated',
  'resized',
  'store-failed',
  'store-ok',
]);

/** The grid runs once in this many drawings: short bars have few steps. */
const EVERY: Readonly<Record<Density, number>> = { cards: 1, tiles: 2, dots: 4 };

// The page of the node ids: draws what the stream brings, and what the reader selects.

const model = new ClusterModel(browserClock);
const frame: Frame = new Frame({
  stream: 'api/events',
  what: 'the leases',
  model,
  draw,
  focusFound: focusGrid,
  onEscape: clear,
});
/** The number of this drawing. */
let drawing = 0;
/** What the grid and the summary show of `received`. */
let nodes: readonly NodeNow[] = [];
let received: readonly SeenNode[] = [];
let selected: number | undefined;
let eventFilter: EventFilter = { kind: '', text: '' };
const log = new TenureLog();

function draw() {
  const news = model.takeNews();
  const density = densityOf(model.nodes.length);
  drawing += 1;
  const { now } = model;
  // The time of the store, as far as the server knows it.
  const [min, max] = model.store.clockOffsetMs ?? [0, 0];
  const storeNow = now + (min + max) / 2;
  if (model.nodes !== received) {
    drawing = 0;
    received = model.nodes;
    void log.see(model.nodes, storeNow, (ids) => frame.get<ClusterHistory>(`api/history?ids=${ids}`));
  }
  if (drawing % EVERY[density] === 0) nodes = model.lookAtAll();
  const byState = Map.groupBy(nodes, ({ state }) => state);
  const seen = model.node(selected ?? -1);
  const root = document.documentElement;
  root.dataset.layout = nodes.length === 0 ? 'none' : density;
  root.toggleAttribute('data-details', seen !== undefined);
  root.toggleAttribute('data-versions', model.knowsVersions);
  document.title = `${nodes.length > 0 ? `${byState.get('held')?.length ?? 0}/${nodes.length} held · ` : ''}nodelease`;
  const { hasServices, hasConfigurations } = model.hello ?? {};
  const pages = [hasServices && 'Services', hasConfigurations && 'Configurations'];
  frame.links(pages.flatMap((page) => (page ? [[page.toLowerCase(), page]] : [])));
  render(settingsText(model), find('settings'));

  const ids = h(
    'section',
    { class: 'ids', 'aria-label': 'Node ids' },
    h(
      'div',
      { class: 'bar-of-tools' },
      h('h2', null, 'Node ids'),
      summary(byState),
      search('Filter the node ids', 'Filter: 10-20, overdue, …', frame.filter, frame.filterBy, true),
    ),
    nodes.length > 0
      ? memo(
          () => h(IdGrid, { model, nodes, seen, filter: frame.filter, note, onSelect: select }),
          [nodes, frame.filter, seen],
        )
      : h('p', { class: 'empty quiet', id: 'empty' }, emptyText(model)),
  );
  const events = eventList(model, eventFilter, filterEvents);
  const time = {
    lanes: log.lanes,
    knownSince: log.knownSince,
    first: log.first,
    nodes,
    filter: frame.filter,
    selected: seen?.node.id,
    now: Math.floor(storeNow / 2_000) * 2_000,
  };
  const timeline = nodes.length > 0 && memo(() => h(Timeline, time), Object.values(time));
  const shards = shardsPanel(model);
  const locks = locksPanel(model);
  // The events are below the node ids while there are few of those, and next to them where there are many.
  const areFew = density === 'cards';
  const page = [
    h(
      'div',
      { class: 'left' },
      areFew ? [ids, timeline, shards, locks, events] : [timeline, shards, locks, ids],
      h(DataPanel, { tree: model.tree, frame, isWritable: model.hello?.writesData ?? false }),
    ),
    h(
      'div',
      { class: 'rail' },
      seen && detailsPanel(model, seen, closeDetails),
      model.hello?.acts && h(ActsPanel, { acts: model.hello.acts, nodes, frame }),
      instancePanel(model),
      storePanel(model),
      !areFew && events,
      treePanel(model),
    ),
  ];
  render(h(Now.Provider, { value: now }, page), find('content'));

  for (const { nodeId, kind, text } of news) {
    if (nodeId !== null) flash(nodeId, kind);
    if (SPOKEN.has(kind)) frame.announcer.say(text);
  }
}

/** How many node ids are in which state, each one a button that shows only those. */
function summary(byState: ReadonlyMap<NodeState, readonly unknown[]>) {
  const buttons = NODE_STATES.map((state) => {
    const { length: count } = byState.get(state) ?? [];
    const isPressed = frame.filter.trim() === state;
    return h(
      'button',
      {
        key: state,
        type: 'button',
        class: 'chip',
        'data-state': state,
        'aria-pressed': isPressed,
        title: STATE_MEANINGS[state],
        hidden: count === 0 && state !== 'held' && state !== 'free' && !isPressed,
        onClick: () => frame.filterBy(isPressed ? '' : state),
      },
      mark(state),
      h('b', null, count.toLocaleString('en')),
      ` ${state}`,
    );
  });
  return h(
    'fieldset',
    { class: 'states', id: 'states' },
    h('legend', { class: 'hidden-label' }, 'Show only the node ids that are'),
    buttons,
  );
}

/** The settings of the cluster, in words. */
function settingsText({ cluster, nodes }: ClusterModel) {
  if (cluster?.cluster) {
    const { size, durationMs, graceMs, idWidth, bootstrapped } = cluster.cluster;
    const parts = formatView(cluster)?.settings(cluster.cluster) ?? [
      `lease ${formatSetting(durationMs ?? 0)} and ${formatSetting(graceMs)} of grace`,
      `${idWidth} bits of a unique id`,
    ];
    const pending = bootstrapped ? [] : ['being bootstrapped'];
    return [counted(size, 'node id'), ...parts, ...pending, ...drainingText(cluster)].join(' · ');
  }
  if (!cluster?.allocation) return '';
  const { groups, idWidth } = cluster.allocation;
  return `${counted(nodes.length, 'node id')} from ZooKeeper · ${counted(groups.length, 'group')} of 256 · ${idWidth} bits of a unique id`;
}

/** How a node id came to its holder, and how long ago. */
function note(node: NodeReport) {
  const { id, version } = node;
  const warning = warningOf(node);
  if (warning) return warning;
  const event = model.events.find(({ nodeId }) => nodeId === id);
  if (event === undefined) return '';
  const from = event.previousTaskId === null ? '' : ` from ${shortName(event.previousTaskId)}`;
  const isOfHolder = event.kind === 'taken-over' && event.version === version;
  const what = isOfHolder ? `taken over${from}` : event.kind.replace('-', ' ');
  return `${what}, ${eventAgo(event, browserClock.now())}`;
}

function filterEvents(filter: EventFilter) {
  eventFilter = filter;
  draw();
}

function select(id: number | undefined) {
  selected = id;
  draw();
}

/** Selects a node id that is named outside of the grid. */
function show(id: number) {
  if (model.node(id) === undefined) return;
  selected = id;
  frame.filterBy('');
  focusNode(id);
}

function closeDetails() {
  select(undefined);
  focusGrid();
}

/** What Escape does: closes the details, else clears the filter. */
function clear() {
  if (selected !== undefined) closeDetails();
  else if (frame.filter !== '') {
    frame.filterBy('');
    focusGrid();
  }
}

function emptyText({ cluster, store, isKnown }: ClusterModel) {
  if (!isKnown) return 'Connecting …';
  if (cluster === null || store.state === 'unknown') return 'The leases have not been read yet.';
  return `There is no cluster at ${cluster.store ?? 'this store'} yet. The first task creates it.`;
}

find('content').addEventListener('click', ({ target }) => {
  const id = (target as Element).closest<HTMLElement>('[data-node]')?.dataset.node;
  if (id !== undefined) show(Number(id));
});
frame.start();
