import { h } from 'preact';
import type { ClusterModel } from '../model/cluster-model.js';
import { drainingText, formatSetting } from '../model/format.js';
import { NODE_STATES, type NodeState, STATE_MEANINGS } from '../model/node-state.js';
import { formatView } from './camunda/camunda-view.js';
import type { Frame } from './frame.js';
import { mark } from './ui.js';

/** How many node ids are in which state, each one a button that shows only those. */
export function summary(byState: ReadonlyMap<NodeState, readonly unknown[]>, frame: Frame) {
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
  const legend = h('legend', { class: 'hidden-label' }, 'Show only the node ids that are');
  return h('fieldset', { class: 'states', id: 'states' }, legend, buttons);
}

/** The settings of the cluster, in words. */
export function settingsText({ cluster, nodes }: ClusterModel): string {
  if (cluster?.cluster) {
    const { size, durationMs, graceMs, idWidth, bootstrapped } = cluster.cluster;
    const parts = formatView(cluster)?.settings(cluster.cluster) ?? [
      `lease ${formatSetting(durationMs ?? 0)} and ${formatSetting(graceMs)} of grace`,
      `${idWidth} bits of a unique id`,
    ];
    const pending = bootstrapped ? [] : ['being bootstrapped'];
    return [`${size.toLocaleString('en')} node ids`, ...parts, ...pending, ...drainingText(cluster)].join(
      ' · ',
    );
  }
  if (!cluster?.allocation) return '';
  const { groups, idWidth } = cluster.allocation;
  return `${nodes.length.toLocaleString('en')} node ids from ZooKeeper · ${groups.length} ${groups.length === 1 ? 'group' : 'groups'} of 256 · ${idWidth} bits of a unique id`;
}
