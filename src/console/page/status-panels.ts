import type { ClusterModel } from '../cluster-model.js';
import { clockTime, formatDuration, formatOffset, formatShort } from '../format.js';
import { make, mark, pair, setText } from './dom.js';

const SVG = 'http://www.w3.org/2000/svg';
const WIDTH = 120;
const HEIGHT = 24;
/** How many values the whole width has room for. */
const ROOM = 60;

/** How the place where the leases come from is doing. */
export class StorePanel {
  constructor(
    private readonly root: HTMLElement,
    private readonly model: ClusterModel,
  ) {}

  show(): void {
    const { store, cluster, latencies } = this.model;
    const title = cluster?.allocation ? 'ZooKeeper' : 'Store';
    const states = { ok: 'answers', failing: 'failing', unknown: 'not read yet' };
    const chip = make(
      'span',
      { class: 'chip', attributes: { 'data-state': store.state } },
      mark(`store-${store.state}`),
      states[store.state],
    );
    const facts = make('dl', { class: 'facts' });
    const url = cluster?.allocation?.zookeeper ?? cluster?.store;
    if (url) facts.append(pair('Address', make('code', { text: url })));
    if (store.problem !== null) facts.append(pair('Problem', make('span', { class: 'bad', text: store.problem })));
    if (store.latencyMs !== null) {
      const latency = make('span', { class: 'latency' }, make('span', { class: 'number', text: formatShort(store.latencyMs) }));
      if (latencies.length > 1) latency.append(sparkline(latencies));
      facts.append(pair('Last request', latency));
    }
    if (store.clockOffsetMs !== null) facts.append(pair('Its clock', formatOffset(store.clockOffsetMs)));
    if (store.state === 'failing' && store.lookedAt !== null) facts.append(pair('Last read at', clockTime(store.lookedAt)));
    const discovery = cluster?.discovery;
    if (discovery) {
      const said = discovery.state === 'ok' ? 'agrees with the leases' : (discovery.problem ?? 'degraded');
      facts.append(pair('Discovery', make('span', { class: discovery.state === 'ok' ? '' : 'bad', text: said })));
    }
    this.root.replaceChildren(make('div', { class: 'panel-title' }, make('h2', { text: title }), chip), facts);
  }
}

/** How the process that serves the page is doing with its own node id. Not there where it holds none, as with `nodelease console`. */
export class InstancePanel {
  readonly #left = make('span');
  /** What is drawn, without what runs. */
  #drawn = '';

  constructor(
    private readonly root: HTMLElement,
    private readonly model: ClusterModel,
    private readonly onSelect: (id: number) => void,
  ) {}

  show(): void {
    const { instance } = this.model;
    this.root.hidden = instance === null;
    if (instance === null) return;
    const { validForMs: _validForMs, ...lasting } = instance;
    const drawn = JSON.stringify(lasting);
    if (drawn === this.#drawn) return;
    this.#drawn = drawn;
    const { nodeId, version, taskId, discovery, reason, ready, live, state, validForMs } = instance;
    const kind = ready ? 'ok' : live ? 'unknown' : 'failing';
    const chip = make('span', { class: 'chip', attributes: { 'data-state': kind } }, mark(`store-${kind}`), ready ? 'ready' : state);
    const facts = make('dl', { class: 'facts' });
    if (nodeId !== null) {
      const attributes = { type: 'button', 'aria-label': `Show node id ${nodeId}` };
      const button = make('button', { class: 'id-chip', text: String(nodeId), attributes, onClick: () => this.onSelect(nodeId) });
      facts.append(pair('Node id', button, version === null ? '' : ` version ${version}`));
    }
    if (taskId !== null) facts.append(pair('Task', make('code', { text: taskId })));
    if (validForMs !== null) facts.append(pair('Lease', this.#left));
    if (reason !== null) facts.append(pair('Not ready', make('span', { class: 'bad', text: reason })));
    if (discovery !== null) facts.append(pair('Discovery', discovery.problem ?? (discovery.state === 'ok' ? 'registered' : 'degraded')));
    this.root.replaceChildren(make('div', { class: 'panel-title' }, make('h2', { text: 'This instance' }), chip), facts);
    this.tick();
  }

  /** Lets the time run. */
  tick(): void {
    const { instance, instanceReceivedAt } = this.model;
    if (instance?.validForMs == null) return;
    const left = instance.validForMs - this.model.since(instanceReceivedAt);
    setText(this.#left, left > 0 ? `${formatDuration(left)} left` : 'to be renewed');
  }
}

/** The last values as a line, the newest at the right end; 0 is at the bottom. Decoration: says nothing aloud. */
function sparkline(values: readonly number[]): SVGElement {
  const most = Math.max(...values, 1);
  const x = (index: number) => WIDTH - 1 - ((values.length - 1 - index) * (WIDTH - 2)) / (ROOM - 1);
  const y = (value: number) => HEIGHT - 1 - (value / most) * (HEIGHT - 3);
  const points = values.map((value, index) => `${x(index).toFixed(1)},${y(value).toFixed(1)}`).join(' ');
  const line = svg('polyline', { points, fill: 'none', 'vector-effect': 'non-scaling-stroke' });
  return svg(
    'svg',
    { class: 'sparkline', viewBox: `0 0 ${WIDTH} ${HEIGHT}`, width: `${WIDTH}`, height: `${HEIGHT}`, 'aria-hidden': 'true' },
    line,
  );
}

function svg(name: string, attributes: Readonly<Record<string, string>>, ...children: readonly SVGElement[]): SVGElement {
  const made = document.createElementNS(SVG, name) as SVGElement;
  for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
  made.append(...children);
  return made;
}
