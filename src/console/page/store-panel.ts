import type { ClusterModel } from '../cluster-model.js';
import { formatOffset, formatShort } from '../span.js';
import { make, mark, pair } from './dom.js';
import { sparkline } from './sparkline.js';
import { clockTime } from './wall-time.js';

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
