import type { ClusterModel, SeenNode } from '../cluster-model.js';
import { clockTime, formatDuration } from '../format.js';
import { type Knowledge, type KnownVersions, tally } from '../knowledge.js';
import { type NodeState, STATE_MEANINGS } from '../node-state.js';
import type { WireNode } from '../wire.js';
import { leftText } from './cell.js';
import { button, chip, fact, find, make, mark, quiet, setText } from './dom.js';

/** More ids than this are counted, not listed. */
const MAX_LISTED = 48;
/** Added to a node id in the discovery tree. */
const RESERVED = 8;

/** Everything about the node id that is selected. */
export class DetailsPanel {
  readonly #root = find('details');
  readonly #left = make('span');
  readonly #age = make('span');
  readonly #expiry = make('span');
  #seen: SeenNode | undefined;
  /** What is drawn, without what runs. */
  #drawn = '';

  constructor(
    private readonly model: ClusterModel,
    private readonly onClose: () => void,
    private readonly onSelect: (id: number) => void,
  ) {}

  /** Shows a node id, or nothing. */
  show(seen: SeenNode | undefined, knowledge: Knowledge | undefined): void {
    this.#seen = seen;
    this.#root.hidden = seen === undefined;
    if (seen === undefined) return;
    const { node } = seen;
    const { state } = this.model.look(seen);
    const lasting = {
      ...node,
      ageMs: node.ageMs !== null,
      expiresInMs: node.expiresInMs !== null,
      timestamp: node.timestamp !== null,
    };
    const drawn = JSON.stringify([
      lasting,
      state,
      this.#inDiscovery(node.id),
      [...(knowledge?.others ?? [])],
      [...(knowledge?.own ?? [])],
    ]);
    // A renewal does not disturb a reader, nor the keyboard focus.
    if (drawn !== this.#drawn) this.#draw(node, state, knowledge);
    this.#drawn = drawn;
    this.tick();
  }

  #draw(node: WireNode, state: NodeState, knowledge: Knowledge | undefined): void {
    const { id, version, taskId, idWidth, camunda } = node;
    const problem = node.problem ?? camunda?.warning ?? null;
    const isCamundas = this.model.cluster?.format === 'camunda';
    const close = button({ class: 'icon', 'aria-label': 'Close the details' }, this.onClose, '×');
    const heading = make('h2', { id: 'details-title' }, `Node id ${id}`);
    const holder = taskId === null ? 'nobody' : make('code', {}, taskId);
    const facts = make(
      'dl',
      { class: 'facts' },
      fact(taskId !== null && state !== 'expired' ? 'Holder' : 'Last holder', holder),
      fact('Version', version > 0 ? `${version}` : 'never held'),
      node.expiresInMs !== null && fact('Lease', this.#left),
      node.ageMs !== null && fact('Last write', this.#age),
      node.timestamp !== null && fact('Expiry', this.#expiry),
      idWidth !== null && fact('Unique ids', `${idWidth} bits for the node id`),
      camunda && fact('Acquirable', camunda.acquirable ? 'yes' : 'no'),
      !isCamundas && fact('In discovery', make('code', {}, hexPath(id)), ` ${this.#inDiscovery(id)}`),
      problem !== null && fact('Problem', make('span', { class: 'bad' }, problem)),
    );
    this.#root.replaceChildren(
      make('div', { class: 'panel-title' }, heading, chip(state, state), close),
      quiet(
        isCamundas && state === 'damaged'
          ? 'Its lease object is absent, or Camunda cannot read it.'
          : STATE_MEANINGS[state],
      ),
      facts,
      ...this.#known('Who knows its version', ' do', knowledge?.others),
      ...this.#known('Whose version its holder knows', '', knowledge?.own),
    );
  }

  /** Lets the times run. */
  tick(): void {
    if (this.#seen === undefined) return;
    const { node, receivedAt } = this.#seen;
    const { left, state } = this.model.look(this.#seen);
    setText(this.#left, leftText(state, left, this.model.graceMs));
    const whose = node.camunda ? 'by its holder’s clock' : 'store time';
    if (node.timestamp !== null) setText(this.#expiry, `${clockTime(node.timestamp)} ${whose}, as written`);
    if (node.ageMs === null) return;
    const [min, max] = node.ageMs;
    setText(
      this.#age,
      `${max === null ? 'at least ' : ''}${formatDuration(min + this.model.since(receivedAt))} ago`,
    );
  }

  #inDiscovery(id: number): string {
    const shown = this.model.cluster?.discovery?.nodes.find((node) => node.id === id);
    if (shown === undefined) return '';
    if (shown.state === 'ok') return `at version ${shown.version ?? '?'}`;
    return shown.version === null ? shown.state : `at version ${shown.version}, which is not the lease’s`;
  }

  /** In words how many are of each kind, and the ones that are not up to date; all where there are few. */
  #known(heading: string, verb: string, map: KnownVersions = new Map()): HTMLElement[] {
    if (map.size === 0) return [];
    const { current, behind, unknown } = tally(map);
    const sum = [`${current} of ${map.size}${verb}`];
    if (behind > 0) sum.push(`${behind} behind`);
    if (unknown > 0) sum.push(`${unknown} not yet`);
    const isShort = map.size <= MAX_LISTED;
    const listed = [...map].filter(
      ([, { known }]) => isShort || known === 'behind' || (known === 'unknown' && unknown <= MAX_LISTED),
    );
    const chips = listed.slice(0, MAX_LISTED).map(([id, { known, version }]) => {
      const said =
        known === 'current' ? 'up to date' : known === 'behind' ? `behind, at version ${version}` : 'not yet';
      const attributes = {
        class: 'id-chip',
        'data-known': known,
        'aria-label': `Node id ${id}: ${said}`,
        title: said,
      };
      const text = known === 'behind' ? `${id} (v${version})` : String(id);
      return button(attributes, () => this.onSelect(id), mark(`known-${known}`), text);
    });
    const more = listed.length - chips.length;
    const rest = more > 0 && make('span', { class: 'quiet' }, `and ${more} more`);
    return [make('h3', {}, heading), quiet(sum.join(' · ')), make('div', { class: 'chips' }, ...chips, rest)];
  }
}

/** Where a node id stands in the discovery tree (group and index in hex). */
function hexPath(id: number): string {
  const clusterNodeId = id + RESERVED;
  const hex = (byte: number) => byte.toString(16).padStart(2, '0');
  return `nodes/${hex(clusterNodeId >> 8)}/${hex(clusterNodeId & 0xff)}`;
}
