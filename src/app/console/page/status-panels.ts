import { h } from 'preact';
import type { ClusterModel } from '../model/cluster-model.js';
import { agreementText, clockTime, formatDuration, formatOffset, formatShort } from '../model/format.js';
import { formatView } from './camunda/camunda-view.js';
import { bad, chip, fact, facts, nodeButton, panel, quiet } from './ui.js';

const WIDTH = 120;
const HEIGHT = 24;
/** How many values the whole width has room for. */
const ROOM = 60;

const STORE_STATES = { ok: 'answers', failing: 'failing', unknown: 'not read yet' };

/** The state of the store that the leases come from. */
export function storePanel(model: ClusterModel) {
  const { store, cluster, tree, latencies } = model;
  const { state, problem, latencyMs, clockOffsetMs, lookedAt } = store;
  const { allocation, discovery } = cluster ?? {};
  // A task that is missing there, and has learnt nothing there, runs without ZooKeeper.
  const learnt = (id: number) => Object.keys(model.node(id)?.node.knownNodes ?? {}).length > 0;
  const isFault = discovery?.nodes.some(
    ({ id, state }) => state !== 'ok' && (state !== 'missing' || learnt(id)),
  );
  const url = allocation?.zookeeper ?? cluster?.store;
  const latency = latencyMs !== null && h('span', { class: 'number' }, formatShort(latencyMs));
  return panel(
    'store',
    allocation ? 'ZooKeeper' : 'Store',
    chip(`store-${state}`, STORE_STATES[state]),
    facts(
      url && fact('Address', h('code', null, url)),
      problem !== null && fact('Problem', bad(problem)),
      latency &&
        fact(
          'Last request',
          h('span', { class: 'latency' }, latency, latencies.length > 1 && sparkline(latencies)),
          latencies.length > 1 &&
            quiet(`the last ${latencies.length}, ${formatShort(Math.max(...latencies))} at most`),
        ),
      clockOffsetMs !== null && fact('Its clock', formatOffset(clockOffsetMs)),
      state === 'failing' && lookedAt !== null && fact('Last read at', clockTime(lookedAt)),
      cluster && formatView(cluster)?.ofStore(cluster),
      discovery &&
        fact(
          'Discovery',
          discovery.state === 'ok'
            ? agreementText(discovery, tree)
            : isFault
              ? bad(discovery.problem ?? 'degraded')
              : discovery.problem,
        ),
    ),
  );
}

/** The node id of the process that serves the page. Absent without one, as with `nodelease console`. */
export function instancePanel(model: ClusterModel) {
  if (model.instance === null) return null;
  const { nodeId, version, taskId, discovery, reason, ready, live, state, validForMs } = model.instance;
  const left = (validForMs ?? 0) - model.since(model.instanceReceivedAt);
  const kind = ready ? 'ok' : live ? 'unknown' : 'failing';
  return panel(
    'instance',
    'This instance',
    chip(`store-${kind}`, ready ? 'ready' : state),
    facts(
      nodeId !== null && fact('Node id', nodeButton(nodeId), version !== null && ` version ${version}`),
      taskId !== null && fact('Task', h('code', null, taskId)),
      validForMs !== null && fact('Lease', left > 0 ? `${formatDuration(left)} left` : 'to be renewed'),
      reason !== null && fact('Not ready', bad(reason)),
      discovery &&
        fact('Discovery', discovery.problem ?? (discovery.state === 'ok' ? 'registered' : 'degraded')),
    ),
  );
}

/** The last values as a line, the newest at the right end; 0 is at the bottom. Hidden from screen readers. */
function sparkline(values: readonly number[]) {
  const max = Math.max(...values, 1);
  const x = (index: number) => WIDTH - 1 - ((values.length - 1 - index) * (WIDTH - 2)) / (ROOM - 1);
  const y = (value: number) => HEIGHT - 1 - (value / max) * (HEIGHT - 3);
  const points = values.map((value, index) => `${x(index).toFixed(1)},${y(value).toFixed(1)}`).join(' ');
  const viewBox = `0 0 ${WIDTH} ${HEIGHT}`;
  return h(
    'svg',
    { class: 'sparkline', viewBox, width: WIDTH, height: HEIGHT, 'aria-hidden': 'true' },
    h('polyline', { points, fill: 'none' }),
  );
}
