import type { ClusterStatus, NodeStatus } from '../lease/inspect.js';
import { problemOf } from '../monitor/damage.js';
import type { DiscoveryStatus, NodeDiscovery } from '../monitor/discovery-glance.js';
import { expiresInMs } from '../monitor/status-report.js';
import type { Interval } from '../store/lease-store.js';
import { counted } from './counted.js';
import { type Ink, type Paint, paintFor, printable } from './ink.js';
import type { Screen } from './io.js';
import { narrowLine } from './narrow-holders.js';
import { formatSetting, formatSpan } from './span.js';
import { type Cell, type Column, cut, renderTable } from './table.js';

/** What is told of a node id, wherever it comes from. */
export const LEASE_COLUMNS: readonly Column[] = [
  { title: 'ID', align: 'right' },
  { title: 'STATE' },
  { title: 'VERSION', align: 'right' },
  { title: 'TASK', least: 12 },
  { title: 'AGE', align: 'right' },
  { title: 'EXPIRES IN', align: 'right' },
];
const DISCOVERY_COLUMN: Column = { title: 'DISCOVERY' };
/** The last column, for what is wrong with it. */
export const PROBLEM_COLUMN: Column = { title: 'PROBLEM', least: 16 };

const INKS: Readonly<Record<NodeStatus['state'], Ink | undefined>> = {
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
 * grows, one line on who keeps it waiting.
 */
export function statusTable(status: ClusterStatus, options: StatusTableOptions): string[] {
  const { screen, maxLines = Number.POSITIVE_INFINITY, discovery } = options;
  const paint = paintFor(screen?.color ?? false);
  const { nodes, cluster } = status;
  const head = headLine(nodes, cluster.idWidth, screen);
  const overhead = (discovery === undefined ? 2 : 3) + head.length;
  const all = nodes.length + overhead <= maxLines;
  // One more line is for the note that says how many are left out.
  const shown = all ? nodes : mostTelling(status, Math.max(1, maxLines - overhead - 1));
  const rows = shown.map((node) => row(node, cluster, discovery));
  // A terminal has no room for a column that is empty; whoever reads a pipe wants the same columns every time.
  const spared = screen !== undefined && shown.every((node) => problemOf(node, cluster) === undefined);
  const columns = [...LEASE_COLUMNS, ...(discovery === undefined ? [] : [DISCOVERY_COLUMN]), ...(spared ? [] : [PROBLEM_COLUMN])];
  const left = nodes.length - shown.length;
  return [
    ...head,
    ...renderTable(columns, rows, { width: screen?.columns, paint }),
    ...(left > 0 ? [paint(`… and ${left} more (nodelease status --all shows them)`, 'dim')] : []),
    fittedSummary(status, screen, paint),
    ...(discovery === undefined ? [] : [discoverySummary(discovery, screen)]),
  ];
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
    { text: node.state, ink: problem === undefined ? INKS[node.state] : 'red' },
    { text: node.version === 0 ? '-' : String(node.version), ink: node.version === 0 ? 'dim' : undefined },
    { text: node.taskId ?? '' },
    { text: ageText(node.age) },
    expiryCell(node),
    ...(discovery === undefined ? [] : [discoveryCell(discovery.nodes.get(node.id))]),
    { text: problem ?? '', ink: 'red' },
  ];
}

/** An age as exactly as the store tells it: S3 in whole seconds, others to the millisecond, hand-made files not at all. */
function ageText(age: Interval | undefined): string {
  if (age === undefined) return '';
  if (!Number.isFinite(age.max)) return `>${formatSpan(age.min)}`;
  return age.max - age.min > 500 ? `~${formatSpan((age.min + age.max) / 2)}` : formatSpan(age.min);
}

function expiryCell(node: NodeStatus): Cell {
  const expiresIn = expiresInMs(node);
  if (expiresIn === undefined) return { text: '' };
  if (expiresIn > 0) return { text: formatSpan(expiresIn) };
  return { text: node.state === 'expired' ? 'expired' : 'in grace', ink: 'yellow' };
}

function discoveryCell(node: NodeDiscovery | undefined): Cell {
  if (node === undefined) return { text: '' };
  switch (node.state) {
    case 'ok':
      return { text: 'ok', ink: 'green' };
    case 'unknown':
      return { text: '?', ink: 'dim' };
    case 'other-version':
      return { text: `version ${node.version}`, ink: 'yellow' };
    default:
      return { text: node.state, ink: 'red' };
  }
}

function mostTelling(status: ClusterStatus, limit: number): NodeStatus[] {
  const weight = (node: NodeStatus) => (problemOf(node, status.cluster) === undefined ? WEIGHTS[node.state] : 0);
  return [...status.nodes]
    .sort((a, b) => weight(a) - weight(b) || a.id - b.id)
    .slice(0, limit)
    .sort((a, b) => a.id - b.id);
}

function fittedSummary(status: ClusterStatus, screen: Screen | undefined, paint: Paint): string {
  const columns = screen?.columns ?? Number.POSITIVE_INFINITY;
  for (const width of [`, node ids ${bits(status)} wide`, `, node ids ${bits(status)}`, '']) {
    if (summary(status, (text) => text, width).length <= columns) return summary(status, paint, width);
  }
  return cut(
    summary(status, (text) => text, ''),
    columns,
  );
}

function bits({ cluster }: ClusterStatus): string {
  return counted(cluster.idWidth, 'bit');
}

function summary(status: ClusterStatus, paint: Paint, width: string): string {
  const count = { held: 0, free: 0, expired: 0, evicted: 0, damaged: 0, retired: 0 };
  for (const node of status.nodes) {
    if (problemOf(node, status.cluster) !== undefined) count.damaged += 1;
    else if (node.state === 'held' || node.state === 'expired' || node.state === 'evicted' || node.state === 'retired')
      count[node.state] += 1;
    else count.free += 1;
  }
  const { durationMs, graceMs } = status.cluster;
  const damaged = paint(`damaged ${count.damaged}`, count.damaged > 0 ? 'red' : undefined);
  const rare = (['evicted', 'retired'] as const).map((state) => (count[state] > 0 ? `, ${state} ${count[state]}` : '')).join('');
  const settings = `duration ${formatSetting(durationMs)}, grace ${formatSetting(graceMs)}`;
  return `held ${count.held}, free ${count.free}, expired ${count.expired}, ${damaged}${rare}; ${settings}${width}`;
}
