import type { ClusterModel } from '../cluster-model.js';
import { formatSpan } from '../span.js';
import { make, mark, pair, setText } from './dom.js';

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
    setText(this.#left, left > 0 ? `${formatSpan(left)} left` : 'to be renewed');
  }
}
