import type { ClusterModel } from '../cluster-model.js';
import { drainingText, formatSetting } from '../format.js';
import { NODE_STATES, type NodeState, STATE_MEANINGS, STATE_TITLES } from '../node-state.js';
import { make, mark, setText } from './dom.js';

/** The states that are shown although no node id is in them. */
const ALWAYS: readonly NodeState[] = ['held', 'free'];

/** How many node ids are in which state, each one a button that shows only those, and the settings of the cluster. */
export class Summary {
  readonly #chips = new Map<NodeState, { readonly button: HTMLButtonElement; readonly count: HTMLElement }>();

  constructor(
    chips: HTMLElement,
    private readonly settings: HTMLElement,
    private readonly model: ClusterModel,
    onState: (state: NodeState) => void,
  ) {
    for (const state of NODE_STATES) {
      const count = make('b', { text: '0' });
      const attributes = { type: 'button', 'data-state': state, 'aria-pressed': 'false', title: STATE_MEANINGS[state] };
      const button = make(
        'button',
        { class: 'chip', attributes, onClick: () => onState(state) },
        mark(state),
        count,
        ` ${STATE_TITLES[state]}`,
      );
      this.#chips.set(state, { button, count });
      chips.append(button);
    }
  }

  /** Counts anew. Returns how many are in which state. */
  show(): ReadonlyMap<NodeState, number> {
    const counts = new Map<NodeState, number>();
    for (const seen of this.model.nodes) {
      const { state } = this.model.look(seen);
      counts.set(state, (counts.get(state) ?? 0) + 1);
    }
    for (const [state, { button, count }] of this.#chips) {
      const number = counts.get(state) ?? 0;
      setText(count, number.toLocaleString('en'));
      const isHidden = number === 0 && !ALWAYS.includes(state) && button.getAttribute('aria-pressed') !== 'true';
      if (button.hidden !== isHidden) button.hidden = isHidden;
    }
    setText(this.settings, settingsText(this.model));
    return counts;
  }

  /** Shows which state is filtered by. */
  press(pressed: NodeState | undefined): void {
    for (const [state, { button }] of this.#chips) button.setAttribute('aria-pressed', String(state === pressed));
  }
}

function settingsText({ cluster, nodes }: ClusterModel): string {
  if (cluster?.cluster) {
    const { size, durationMs, graceMs, idWidth, bootstrapped } = cluster.cluster;
    const lease = `lease ${formatSetting(durationMs)} and ${formatSetting(graceMs)} of grace`;
    const parts = [`${size.toLocaleString('en')} node ids`, lease, `${idWidth} bits of a unique id`];
    const draining = drainingText(cluster);
    return [...parts, ...(bootstrapped ? [] : ['being bootstrapped']), ...(draining === undefined ? [] : [draining])].join(' · ');
  }
  if (!cluster?.allocation) return '';
  const { groups, idWidth } = cluster.allocation;
  return `${nodes.length.toLocaleString('en')} node ids from ZooKeeper · ${groups.length} ${groups.length === 1 ? 'group' : 'groups'} of 256 · ${idWidth} bits of a unique id`;
}
