import type { ClusterStatus, NodeStatus } from '../lease/inspect.js';
import { problemOf } from '../monitor/damage.js';
import type { DiscoveryStatus, NodeDiscovery } from '../monitor/discovery-glance.js';
import type { PagedCluster, PageReport } from '../monitor/paged-cluster.js';
import { expiresInMs } from '../monitor/status-report.js';
import type { Interval } from '../store/lease-store.js';
import { type Color, paintFor } from './color.js';
import type { Screen } from './io.js';
import { narrowLine } from './narrow-holders.js';
import { drainingLine, fittedSummary } from './status-summary.js';
import { type Cell, type Column, cut, renderTable } from './table.js';
import { formatDuration, printable } from './text.js';

/** What is told of a node id, wherever it comes from. */
export const LEASE_COLUMNS: readonly Column[] = [
  { title: 'ID', align: 'right' },
  { title: 'STATE' },
  { title: 'VERSION', align: 'right' },
  { title: 'TASK', minWidth: 12 },
  { title: 'AGE', align: 'right' },
  { title: 'EXPIRES IN', align: 'right' },
];
const DISCOVERY_COLUMN: Column = { title: 'DISCOVERY' };
/** The last column, for what is wrong with it. */
export const PROBLEM_COLUMN: Column = { title: 'PROBLEM', minWidth: 16 };

const COLORS: Readonly<Record<NodeStatus['state'], Color | undefined>> = {
  held: 'green',
  expired: 'yellow',
  vacant: 'dim',
  released: 'dim',
  evicted: 'yellow',
  retired: 'dim',
  absent: 'dim',
  unreadable: 'red',
};

/** What is worth a row first, where not all fit. */
const WEIGHTS: Readonly<Record<NodeStatus['state'], number>> = {
  unreadable: 0,
  absent: 4,
  expired: 1,
  held: 2,
  released: 3,
  evicted: 1,
  retired: 4,
  vacant: 4,
};

/** Where a table goes. */
export interface StatusTableOptions {
  /** The terminal; undefined for text without colours and without limits. */
  readonly screen: Screen | undefined;
  /** How many lines there are in all, the summary included; as many as it takes unless given. */
  readonly maxLines?: number | undefined;
  /** How the discovery tree shows the node ids; undefined when it was not asked. */
  readonly discovery?: DiscoveryStatus | undefined;
}

/**
 * The table of a cluster's node ids, one summary line below it, and one for discovery where that was asked; above it, while the cluster
 * grows, one line on who keeps it waiting, and below, while it shrinks, one on who holds ids that it has given up.
 */
export function statusTable(status: PagedCluster, options: StatusTableOptions): string[] {
  const { screen, maxLines = Number.POSITIVE_INFINITY, discovery } = options;
  const paint = paintFor(screen?.color ?? false);
  const { nodes, cluster, page } = status;
  const head = headLine(nodes, cluster.idWidth, screen);
  const draining = drainingLine(status, screen);
  const overhead = (discovery === undefined ? 2 : 3) + head.length + draining.length + (page === null ? 0 : 1);
  const all = nodes.length + overhead <= maxLines;
  // One more line is for the note that says how many are left out.
  const shown = all ? nodes : mostTelling(status, Math.max(1, maxLines - overhead - (page === null ? 1 : 0)));
  const rows = shown.map((node) => row(node, cluster, discovery));
  // A terminal has no room for a column that is empty; whoever reads a pipe wants the same columns every time.
  const spared = screen !== undefined && shown.every((node) => problemOf(node, cluster) === undefined);
  const columns = [...LEASE_COLUMNS, ...(discovery === undefined ? [] : [DISCOVERY_COLUMN]), ...(spared ? [] : [PROBLEM_COLUMN])];
  const note = page === null ? leftOut(nodes.length - shown.length) : pageLine(page, cluster.size, shown.length);
  return [
    ...head,
    ...renderTable(columns, rows, { width: screen?.columns, paint }),
    ...note.map((text) => paint(screen === undefined ? text : cut(text, screen.columns), 'dim')),
    ...draining,
    fittedSummary(status, screen),
    ...(discovery === undefined ? [] : [discoverySummary(discovery, screen)]),
  ];
}

function leftOut(count: number): string[] {
  return count > 0 ? [`… and ${count} more (nodelease status --all shows them)`] : [];
}

/** Which part of a large cluster is shown, and how to get to the rest. */
function pageLine({ next }: PageReport, size: number, shown: number): string[] {
  const more = next === null ? '--from ID shows those from there on' : `--from ${next} shows the next`;
  return [`… ${shown} of ${size} node ids (${more}, --all all of them)`];
}

/** The line above a table of node ids, where there is something to say there. */
export function headLine(nodes: readonly NodeStatus[], idWidth: number, screen: Screen | undefined): string[] {
  const text = narrowLine(nodes, idWidth);
  if (text === undefined) return [];
  const plain = printable(text);
  return [paintFor(screen?.color ?? false)(screen === undefined ? plain : cut(plain, screen.columns), 'yellow')];
}

/** One line on the discovery tree: `discovery: ok`, `discovery: degraded (why)`. */
export function discoverySummary({ problem }: DiscoveryStatus, screen: Screen | undefined): string {
  const paint = paintFor(screen?.color ?? false);
  if (problem === undefined) return `discovery: ${paint('ok', 'green')}`;
  const plain = printable(`discovery: degraded (${problem})`);
  return paint(screen === undefined ? plain : cut(plain, screen.columns), 'yellow');
}

function row(node: NodeStatus, cluster: ClusterStatus['cluster'], discovery: DiscoveryStatus | undefined): Cell[] {
  const problem = problemOf(node, cluster);
  return [
    { text: String(node.id) },
    { text: node.state, color: problem === undefined ? COLORS[node.state] : 'red' },
    { text: node.version === 0 ? '-' : String(node.version), color: node.version === 0 ? 'dim' : undefined },
    { text: node.taskId ?? '' },
    { text: ageText(node.age) },
    expiryCell(node),
    ...(discovery === undefined ? [] : [discoveryCell(discovery.nodes.get(node.id))]),
    { text: problem ?? '', color: 'red' },
  ];
}

/** An age as exactly as the store tells it: S3 in whole seconds, others to the millisecond, hand-made files not at all. */
function ageText(age: Interval | undefined): string {
  if (age === undefined) return '';
  if (!Number.isFinite(age.max)) return `>${formatDuration(age.min)}`;
  return age.max - age.min > 500 ? `~${formatDuration((age.min + age.max) / 2)}` : formatDuration(age.min);
}

function expiryCell(node: NodeStatus): Cell {
  const expiresIn = expiresInMs(node);
  if (expiresIn === undefined) return { text: '' };
  if (expiresIn > 0) return { text: formatDuration(expiresIn) };
  return { text: node.state === 'expired' ? 'expired' : 'in grace', color: 'yellow' };
}

function discoveryCell(node: NodeDiscovery | undefined): Cell {
  if (node === undefined) return { text: '' };
  switch (node.state) {
    case 'ok':
      return { text: 'ok', color: 'green' };
    case 'unknown':
      return { text: '?', color: 'dim' };
    case 'other-version':
      return { text: `version ${node.version}`, color: 'yellow' };
    default:
      return { text: node.state, color: 'red' };
  }
}

function mostTelling(status: ClusterStatus, limit: number): NodeStatus[] {
  const weight = (node: NodeStatus) => (problemOf(node, status.cluster) === undefined ? WEIGHTS[node.state] : 0);
  return [...status.nodes]
    .sort((a, b) => weight(a) - weight(b) || a.id - b.id)
    .slice(0, limit)
    .sort((a, b) => a.id - b.id);
}
