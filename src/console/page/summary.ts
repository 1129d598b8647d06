import type { ClusterModel } from '../cluster-model.js';
import { drainingText, formatSetting } from '../format.js';
import { NODE_STATES, type NodeState, STATE_MEANINGS } from '../node-state.js';
import { button, find, make, mark, setText } from './dom.js';

/**
 * How many node ids are in which state, each one a button that shows only those, and the settings of the
 * cluster.
 */
export class Summary {
  readonly #settings = find('settings');
  readonly #chips = new Map<NodeState, { readonly chip: HTMLButtonElement; readonly count: HTMLElement }>();

  constructor(
    private readonly model: ClusterModel,
    onState: (state: NodeState) => void,
  ) {
    for (const state of NODE_STATES) {
      const count = make('b', {}, '0');
      const attributes = {
        class: 'chip',
        'data-state': state,
        'aria-pressed': 'false',
        title: STATE_MEANINGS[state],
      };
      const chip = button(attributes, () => onState(state), mark(state), count, ` ${state}`);
      this.#chips.set(state, { chip, count });
      find('states').append(chip);
    }
  }

  /** Counts anew. Returns how many are in which state. */
  show(): ReadonlyMap<NodeState, number> {
    const counts = new Map<NodeState, number>();
    for (const seen of this.model.nodes) {
      const { state } = this.model.look(seen);
      counts.set(state, (counts.get(state) ?? 0) + 1);
    }
    for (const [state, { chip, count }] of this.#chips) {
      const number = counts.get(state) ?? 0;
      setText(count, number.toLocaleString('en'));
      const isAlways = state === 'held' || state === 'free' || chip.getAttribute('aria-pressed') === 'true';
      chip.hidden = number === 0 && !isAlways;
    }
    setText(this.#settings, settingsText(this.model));
    return counts;
  }

  /** Shows which state is filtered by. */
  press(pressed: NodeState | undefined): void {
    for (const [state, { chip }] of this.#chips) chip.setAttribute('aria-pressed', String(state === pressed));
  }
}

function settingsText({ cluster, nodes }: ClusterModel): string {
  if (cluster?.cluster) {
    const { size, durationMs, graceMs, idWidth, bootstrapped } = cluster.cluster;
    const lease = `lease ${formatSetting(durationMs ?? 0)} and ${formatSetting(graceMs)} of grace`;
    const parts = [`${size.toLocaleString('en')} node ids`, lease, `${idWidth} bits of a unique id`];
    if (cluster.format === 'camunda') {
      parts.splice(
        1,
        2,
        durationMs === null ? 'no holder' : `leases of about ${formatSetting(durationMs)}`,
        'Camunda 8, read only',
      );
    }
    if (!bootstrapped) parts.push('being bootstrapped');
    return [...parts, ...drainingText(cluster)].join(' · ');
  }
  if (!cluster?.allocation) return '';
  const { groups, idWidth } = cluster.allocation;
  return `${nodes.length.toLocaleString('en')} node ids from ZooKeeper · ${groups.length} ${groups.length === 1 ? 'group' : 'groups'} of 256 · ${idWidth} bits of a unique id`;
}
