import type { ClusterModel, SeenNode } from '../cluster-model.js';
import { clockTime, formatDuration } from '../format.js';
import { type Knowledge, tally } from '../knowledge.js';
import { type NodeState, STATE_MEANINGS, STATE_TITLES } from '../node-state.js';
import type { WireNode } from '../wire.js';
import { leftText } from './cell.js';
import { make, mark, pair, setText } from './dom.js';

/** More ids than this are counted, not listed. */
const MOST_LISTED = 48;
/** Added to a node id in the discovery tree. */
const RESERVED = 8;

/** Everything about the node id that is selected. */
export class DetailsPanel {
  readonly #left = make('span');
  readonly #age = make('span');
  readonly #expiry = make('span');
  #seen: SeenNode | undefined;
  /** What is drawn, without what runs. */
  #drawn = '';

  constructor(
    private readonly root: HTMLElement,
    private readonly model: ClusterModel,
    private readonly onClose: () => void,
    private readonly onSelect: (id: number) => void,
  ) {}

  /** Shows a node id, or nothing. */
  show(id: number | undefined, knowledge: Knowledge | undefined): void {
    this.#seen = id === undefined ? undefined : this.model.node(id);
    this.root.hidden = this.#seen === undefined;
    if (this.#seen === undefined) return;
    const { node } = this.#seen;
    const { state } = this.model.look(this.#seen);
    const { ageMs: _age, expiresInMs: _expires, timestamp: _timestamp, ...lasting } = node;
    const drawn = JSON.stringify([lasting, state, this.#inDiscovery(node.id), [...(knowledge?.others ?? [])], [...(knowledge?.own ?? [])]]);
    // A renewal does not disturb a reader, nor the keyboard focus.
    if (drawn !== this.#drawn) this.#draw(node, state, knowledge);
    this.#drawn = drawn;
    this.tick();
  }

  #draw(node: WireNode, state: NodeState, knowledge: Knowledge | undefined): void {
    const close = make('button', {
      class: 'icon',
      text: '×',
      attributes: { type: 'button', 'aria-label': 'Close the details' },
      onClick: this.onClose,
    });
    const heading = make('h2', { attributes: { id: 'details-title' } }, `Node id ${node.id}`);
    const title = make(
      'div',
      { class: 'panel-title' },
      heading,
      make('span', { class: 'chip', attributes: { 'data-state': state } }, mark(state), STATE_TITLES[state]),
      close,
    );
    const facts = make('dl', { class: 'facts' });
    facts.append(
      pair(
        node.taskId !== null && state !== 'expired' ? 'Holder' : 'Last holder',
        node.taskId === null ? 'nobody' : make('code', { text: node.taskId }),
      ),
    );
    facts.append(pair('Version', node.version > 0 ? `${node.version}` : 'never held'));
    if (node.expiresInMs !== null) facts.append(pair('Lease', this.#left));
    if (node.ageMs !== null) facts.append(pair('Last write', this.#age));
    if (node.timestamp !== null) facts.append(pair('Expiry', this.#expiry));
    if (node.idWidth !== null) facts.append(pair('Unique ids', `${node.idWidth} bits for the node id`));
    facts.append(pair('In discovery', make('code', { text: hexPath(node.id) }), ` ${this.#inDiscovery(node.id)}`));
    if (node.problem !== null) facts.append(pair('Problem', make('span', { class: 'bad', text: node.problem })));
    this.root.replaceChildren(title, make('p', { class: 'quiet', text: STATE_MEANINGS[state] }), facts, ...this.#knowing(knowledge));
  }

  /** Lets the times run. */
  tick(): void {
    if (this.#seen === undefined) return;
    const { node, receivedAt } = this.#seen;
    const { left, state } = this.model.look(this.#seen);
    setText(this.#left, leftText(state, left, this.model.graceMs));
    if (node.timestamp !== null) setText(this.#expiry, `${clockTime(node.timestamp)} store time, as written`);
    if (node.ageMs !== null) setText(this.#age, `${formatDuration(node.ageMs[0] + this.model.since(receivedAt))} ago`);
  }

  #inDiscovery(id: number): string {
    const { discovery } = this.model.cluster ?? {};
    if (!discovery) return '';
    const shown = discovery.nodes.find((node) => node.id === id);
    if (shown === undefined) return '';
    if (shown.state === 'ok') return `at version ${shown.version ?? '?'}`;
    return shown.version === null ? shown.state : `at version ${shown.version}, which is not the lease’s`;
  }

  #knowing(knowledge: Knowledge | undefined): HTMLElement[] {
    const { others, own } = knowledge ?? {};
    return [
      ...(others?.size
        ? [make('h3', { text: 'Who knows its version' }), ...this.#list(others, (current, all) => `${current} of ${all} do`)]
        : []),
      ...(own?.size
        ? [make('h3', { text: 'Whose version its holder knows' }), ...this.#list(own, (current, all) => `${current} of ${all}`)]
        : []),
    ];
  }

  /** In words how many are of each kind, and those that are not up to date; all where there are few. */
  #list(map: Knowledge['others'], sum: (current: number, all: number) => string): HTMLElement[] {
    const { current, behind, unknown } = tally(map);
    const rest = [...(behind > 0 ? [`${behind} behind`] : []), ...(unknown > 0 ? [`${unknown} not yet`] : [])];
    const isShort = map.size <= MOST_LISTED;
    const listed = [...map].filter(([, { known }]) => isShort || known === 'behind' || (known === 'unknown' && unknown <= MOST_LISTED));
    const chips = listed.slice(0, MOST_LISTED).map(([id, { known, version }]) => {
      const said = known === 'current' ? 'up to date' : known === 'behind' ? `behind, at version ${version}` : 'not yet';
      const text = known === 'behind' ? `${id} (v${version})` : String(id);
      const attributes = { type: 'button', 'data-known': known, 'aria-label': `Node id ${id}: ${said}`, title: said };
      return make('button', { class: 'id-chip', attributes, onClick: () => this.onSelect(id) }, mark(`known-${known}`), text);
    });
    const more = listed.length - chips.length;
    return [
      make('p', { class: 'quiet', text: [sum(current, map.size), ...rest].join(' · ') }),
      make('div', { class: 'chips' }, ...chips, ...(more > 0 ? [make('span', { class: 'quiet', text: `and ${more} more` })] : [])),
    ];
  }
}

/** Where a node id stands in the discovery tree (group and index in hex). */
function hexPath(id: number): string {
  const clusterNodeId = id + RESERVED;
  const hex = (byte: number) => byte.toString(16).padStart(2, '0');
  return `nodes/${hex(clusterNodeId >> 8)}/${hex(clusterNodeId & 0xff)}`;
}
