import { agreementText } from '../agreement.js';
import type { ClusterModel } from '../cluster-model.js';
import { clockTime, formatDuration, formatOffset, formatShort } from '../format.js';
import { button, chip, fact, find, make, setText, title } from './dom.js';

const SVG = 'http://www.w3.org/2000/svg';
const WIDTH = 120;
const HEIGHT = 24;
/** How many values the whole width has room for. */
const ROOM = 60;

const STORE_STATES = { ok: 'answers', failing: 'failing', unknown: 'not read yet' };

/** How the place where the leases come from is doing. */
export class StorePanel {
  readonly #root = find('store');

  constructor(private readonly model: ClusterModel) {}

  show(): void {
    const { store, cluster, tree, latencies } = this.model;
    const { state, problem, latencyMs, clockOffsetMs, lookedAt } = store;
    const { allocation, discovery } = cluster ?? {};
    const url = allocation?.zookeeper ?? cluster?.store;
    const latency = latencyMs !== null && make('span', { class: 'number' }, formatShort(latencyMs));
    const isWell = discovery?.state === 'ok';
    const facts = make(
      'dl',
      { class: 'facts' },
      url && fact('Address', make('code', {}, url)),
      problem !== null && fact('Problem', make('span', { class: 'bad' }, problem)),
      latency &&
        fact(
          'Last request',
          make('span', { class: 'latency' }, latency, latencies.length > 1 && sparkline(latencies)),
        ),
      clockOffsetMs !== null && fact('Its clock', formatOffset(clockOffsetMs)),
      state === 'failing' && lookedAt !== null && fact('Last read at', clockTime(lookedAt)),
      cluster?.format && fact('Format', 'Camunda 8'),
      cluster?.format &&
        fact('Marker', cluster.cluster?.bootstrapped ? 'there' : make('span', { class: 'bad' }, 'missing')),
      ...(cluster?.restores ?? []).map(({ restoreId, restoredNodes, problem }) =>
        fact(
          `Restore ${restoreId}`,
          problem === null ? `node ids ${restoredNodes.join(', ')}` : make('span', { class: 'bad' }, problem),
        ),
      ),
      discovery && isWell && fact('Discovery', agreementText(discovery, tree)),
      discovery &&
        !isWell &&
        fact('Discovery', make('span', { class: 'bad' }, discovery.problem ?? 'degraded')),
    );
    this.#root.replaceChildren(
      title(allocation ? 'ZooKeeper' : 'Store', chip(`store-${state}`, STORE_STATES[state])),
      facts,
    );
  }
}

/**
 * How the process that serves the page is doing with its own node id. Not there where it holds none, as with
 * `nodelease console`.
 */
export class InstancePanel {
  readonly #root = find('instance');
  readonly #left = make('span');
  /** What is drawn, without what runs. */
  #drawn = '';

  constructor(
    private readonly model: ClusterModel,
    private readonly onSelect: (id: number) => void,
  ) {}

  show(): void {
    const { instance } = this.model;
    this.#root.hidden = instance === null;
    if (instance === null) return;
    const { nodeId, version, taskId, discovery, reason, ready, live, state, validForMs } = instance;
    const drawn = JSON.stringify({ ...instance, validForMs: validForMs !== null });
    if (drawn === this.#drawn) return;
    this.#drawn = drawn;
    const attributes = { class: 'id-chip', 'aria-label': `Show node id ${nodeId}` };
    const show = nodeId !== null && button(attributes, () => this.onSelect(nodeId), String(nodeId));
    const facts = make(
      'dl',
      { class: 'facts' },
      show && fact('Node id', show, version !== null && ` version ${version}`),
      taskId !== null && fact('Task', make('code', {}, taskId)),
      validForMs !== null && fact('Lease', this.#left),
      reason !== null && fact('Not ready', make('span', { class: 'bad' }, reason)),
      discovery &&
        fact('Discovery', discovery.problem ?? (discovery.state === 'ok' ? 'registered' : 'degraded')),
    );
    const kind = ready ? 'ok' : live ? 'unknown' : 'failing';
    this.#root.replaceChildren(title('This instance', chip(`store-${kind}`, ready ? 'ready' : state)), facts);
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

/**
 * The last values as a line, the newest at the right end; 0 is at the bottom. Decoration: says nothing aloud.
 */
function sparkline(values: readonly number[]): SVGElement {
  const max = Math.max(...values, 1);
  const x = (index: number) => WIDTH - 1 - ((values.length - 1 - index) * (WIDTH - 2)) / (ROOM - 1);
  const y = (value: number) => HEIGHT - 1 - (value / max) * (HEIGHT - 3);
  const points = values.map((value, index) => `${x(index).toFixed(1)},${y(value).toFixed(1)}`).join(' ');
  const line = svg('polyline', { points, fill: 'none' });
  const size = { viewBox: `0 0 ${WIDTH} ${HEIGHT}`, width: `${WIDTH}`, height: `${HEIGHT}` };
  return svg('svg', { class: 'sparkline', ...size, 'aria-hidden': 'true' }, line);
}

function svg(
  name: string,
  attributes: Readonly<Record<string, string>>,
  ...children: readonly SVGElement[]
): SVGElement {
  const made = document.createElementNS(SVG, name) as SVGElement;
  for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
  made.append(...children);
  return made;
}
