import { hexPair } from '../../discovery/tree-paths.js';
import type { NodeStatus } from '../../lease/operate/inspect.js';
import { type AllocatedStatus, widthNeededBy } from '../../monitor/allocated-status.js';
import { type Paint, paintFor } from '../terminal/color.js';
import type { Screen } from '../terminal/io.js';
import { type Cell, renderTable } from '../terminal/table.js';
import { cut, pluralize, printable } from '../terminal/text.js';
import { headLine, LEASE_COLUMNS, PROBLEM_COLUMN } from './status-table.js';

/** Where a table goes. */
export interface AllocatedTableOptions {
  /** The terminal; undefined for text without colours and without limits. */
  readonly screen: Screen | undefined;
  /** How many lines there are in all, the summary included; as many as it takes unless given. */
  readonly maxLines?: number | undefined;
}

/**
 * The table of the node ids that ZooKeeper has given out, and one summary line below it. Age and expiry stay empty: a session tells neither.
 *
 * @param where the servers and the chroot, for people
 */
export function allocatedTable(status: AllocatedStatus, where: string, options: AllocatedTableOptions): string[] {
  const { screen, maxLines = Number.POSITIVE_INFINITY } = options;
  const paint = paintFor(screen);
  const { nodes, groups } = status;
  if (groups === undefined) {
    return [printable(`No node id has been given out at ${where} yet: the first nodelease run --provider zookeeper takes one.`)];
  }
  // Wider ids of before hold nobody up: who makes ids learns of them first.
  const head = headLine(nodes, widthNeededBy(groups), screen);
  // Besides it titles and summary; where not all fit, one more for the note that says how many are left out.
  const overhead = 2 + head.length;
  const shown = nodes.length + overhead <= maxLines ? nodes : mostTelling(nodes, Math.max(1, maxLines - overhead - 1));
  const left = nodes.length - shown.length;
  const spared = screen !== undefined && shown.every(({ problem }) => problem === undefined);
  return [
    ...head,
    ...renderTable(spared ? LEASE_COLUMNS : [...LEASE_COLUMNS, PROBLEM_COLUMN], shown.map(row), screen),
    ...(left > 0 ? [paint(`… and ${left} more (nodelease status --all shows them)`, 'dim')] : []),
    fittedSummary(status, groups, screen, paint),
  ];
}

function row({ id, state, version, taskId, problem }: NodeStatus): Cell[] {
  return [
    { text: String(id) },
    { text: state, color: problem !== undefined ? 'red' : state === 'held' ? 'green' : 'yellow' },
    { text: version === 0 ? '-' : String(version), color: version === 0 ? 'dim' : undefined },
    { text: taskId ?? '' },
    { text: '' },
    { text: '' },
    { text: problem ?? '', color: 'red' },
  ];
}

/** What is wrong, then what was taken away, then the lowest ids; in ascending order. */
function mostTelling(nodes: readonly NodeStatus[], limit: number): NodeStatus[] {
  const weight = ({ state, problem }: NodeStatus) => (problem !== undefined ? 0 : state === 'evicted' ? 1 : 2);
  return [...nodes]
    .sort((a, b) => weight(a) - weight(b) || a.id - b.id)
    .slice(0, limit)
    .sort((a, b) => a.id - b.id);
}

function fittedSummary(status: AllocatedStatus, groups: readonly number[], screen: Screen | undefined, paint: Paint): string {
  const plain = summary(status, groups, (text) => text);
  return screen !== undefined && plain.length > screen.columns ? cut(plain, screen.columns) : summary(status, groups, paint);
}

function summary({ nodes, idWidth }: AllocatedStatus, groups: readonly number[], paint: Paint): string {
  const damaged = nodes.filter(({ problem }) => problem !== undefined).length;
  const count = (state: NodeStatus['state']) => nodes.filter((node) => node.problem === undefined && node.state === state).length;
  const evicted = count('evicted');
  const parts = [
    `held ${count('held')}`,
    paint(`damaged ${damaged}`, damaged > 0 ? 'red' : undefined),
    ...(evicted > 0 ? [`evicted ${evicted}`] : []),
  ];
  return `${parts.join(', ')}; ${groupsText(groups)}, node ids ${idWidth} bits wide`;
}

/** `1 group (00)`, `2 groups (00 to 01)`. */
function groupsText(groups: readonly number[]): string {
  const [first, last] = [groups[0], groups.at(-1)].map((group) => (group === undefined ? undefined : hexPair(group)));
  if (first === undefined) return pluralize(0, 'group');
  return `${pluralize(groups.length, 'group')} (${first === last ? first : `${first} to ${last}`})`;
}
