import { h } from 'preact';
import { warningOf } from '../../../node/wire/status-report.js';
import type { ClusterModel, SeenNode } from '../model/cluster-model.js';
import { clockTime, formatDuration } from '../model/format.js';
import { type KnownVersions, knowledgeOf, leftText, STATE_MEANINGS, tally } from '../model/node-state.js';
import { formatView } from './camunda/camunda-view.js';
import { bad, chip, fact, facts, mark, memo, note, panel, quiet } from './ui.js';

/** More ids than this are counted, not listed. */
const MAX_LISTED = 48;

/** Everything about the node id that is selected. */
export function detailsPanel(model: ClusterModel, seen: SeenNode, onClose: () => void) {
  const drawKnown = () => {
    const { others, own } = knowledgeOf(seen.node, model.nodes);
    return [
      knownVersions('Who knows its version', ' do', others),
      knownVersions('Whose version its holder knows', '', own),
    ];
  };
  const { id, version, taskId, idWidth, sticky, expiresInMs, ageMs, timestamp } = seen.node;
  const { left, state } = model.look(seen);
  const problem = seen.node.problem ?? warningOf(seen.node);
  const view = formatView(model.cluster);
  return panel(
    'details',
    `Node id ${id}`,
    [
      chip(state, state),
      h(
        'button',
        { type: 'button', class: 'icon', 'aria-label': 'Close the details', onClick: onClose },
        '×',
      ),
    ],
    quiet((state === 'damaged' && view?.damaged) || STATE_MEANINGS[state]),
    facts(
      fact(
        taskId !== null && state !== 'expired' ? 'Holder' : 'Last holder',
        taskId === null ? 'none' : h('code', null, taskId),
      ),
      fact('Version', version > 0 ? version : 'never held'),
      expiresInMs !== null && fact('Lease', leftText(state, left, model.graceMs)),
      ageMs !== null && fact('Last write', ageText(ageMs, model.since(seen.receivedAt))),
      timestamp !== null &&
        fact('Expiry', `${clockTime(timestamp)} ${view?.clock ?? 'store time'}, as written`),
      idWidth !== null && fact('Unique ids', `${idWidth} bits for the node id`),
      sticky !== undefined && fact('Sticky key', h('code', null, sticky.slice(0, 8)), '…, its hash'),
      view?.ofNode(seen.node),
      !view && discoveryFact(model, id),
      problem !== undefined && fact('Problem', bad(problem)),
    ),
    model.knowsVersions && memo(drawKnown, [seen, model.nodes]),
  );
}

/** In words how many are of each kind, and the ones that are not up to date; all where there are few. */
function knownVersions(heading: string, verb: string, versions: KnownVersions) {
  if (versions.size === 0) return null;
  const { current, behind, unknown } = tally(versions);
  const sum = [`${current} of ${versions.size}${verb}`];
  if (behind > 0) sum.push(`${behind} behind`);
  if (unknown > 0) sum.push(`${unknown} not yet`);
  const isShort = versions.size <= MAX_LISTED;
  const listed = [...versions].filter(
    ([, { known }]) => isShort || known === 'behind' || (known === 'unknown' && unknown <= MAX_LISTED),
  );
  const chips = listed.slice(0, MAX_LISTED).map(([id, { known, version }]) => {
    const meanings = { current: 'up to date', behind: `behind, at version ${version}`, unknown: 'not yet' };
    const meaning = meanings[known];
    return h(
      'button',
      {
        key: id,
        type: 'button',
        class: 'id-chip',
        'data-known': known,
        'aria-label': `Node id ${id}: ${meaning}`,
        title: meaning,
        'data-node': id,
      },
      mark(`known-${known}`),
      known === 'behind' ? `${id} (v${version})` : id,
    );
  });
  const more = listed.length - chips.length;
  const rest = more > 0 && note(`and ${more} more`);
  return [h('h3', null, heading), quiet(sum.join(' · ')), h('div', { class: 'chips' }, chips, rest)];
}

function ageText([min, max]: readonly [min: number, max: number | null], sinceMs: number) {
  return `${max === null ? 'at least ' : ''}${formatDuration(min + sinceMs)} ago`;
}

function discoveryFact({ cluster }: ClusterModel, id: number) {
  const shown = cluster?.discovery?.nodes.find((node) => node.id === id);
  if (shown === undefined) return null;
  const { state, version } = shown;
  const other = state === 'ok' ? '' : ', which is not the lease’s';
  return fact('In discovery', version === null ? state : `at version ${version}${other}`);
}
