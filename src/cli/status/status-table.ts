import type { ClusterStatus, NodeStatus } from '../../lease/operate/inspect.js';
import type { NarrowHolder } from '../../lease/operate/scaling.js';
import { type PagedCluster, type PageReport, problemOf } from '../../monitor/listed-cluster.js';
import { type DiscoveryStatusReport, expiresInMs, type NodeDiscovery } from '../../monitor/status-report.js';
import type { Interval } from '../../store/lease-store.js';
import { type Color, type Paint, paintFor } from '../terminal/color.js';
import type { Screen } from '../terminal/io.js';
import { type Cell, type Column, fitLine, renderTable } from '../terminal/table.js';
import { cut, formatDuration, formatSetting, pluralize, someOf } from '../terminal/text.js';

/** The columns of every table of node ids, wherever those come from. */
export const LEASE_COLUMNS: readonly Column[] = [
  { title: 'ID', align: 'right' },
  { title: 'STATE' },
  { title: 'VERSION', align: 'right' },
  { title: 'TASK', minWidth: 12 },
  { title: 'AGE', align: 'right' },
  { title: 'EXPIRES IN', align: 'right' },
];
const DISCOVERY_COLUMN: Column = { title: 'DISCOVERY' };
/** The last column. */
export const PROBLEM_COLUMN: Column = { title: 'PROBLEM', minWidth: 16 };

/** The color of each state, and its rank where not all rows fit: lower ranks are shown first. */
const STATES: Readonly<Record<NodeStatus['state'], readonly [color: Color, rank: number]>> = {
  held: ['green', 2],
  expired: ['yellow', 1],
  vacant: ['dim', 4],
  released: ['dim', 3],
  evicted: ['yellow', 1],
  retired: ['dim', 4],
  absent: ['dim', 4],
  unreadable: ['red', 0],
};

/** The width that every holder uses at least, also one that does not say. */
const MIN_ID_WIDTH = 8;

/** Where a table goes. */
export interface StatusTableOptions {
  /** The terminal; undefined for text without colors and without limits. */
  readonly screen: Screen | undefined;
  /** The number of lines in all, the summary included. @default unlimited */
  readonly maxLines?: number | undefined;
  /** How the discovery tree shows the node ids; undefined without discovery. */
  readonly discovery?: DiscoveryStatusReport | undefined;
}

/**
 * The table of a cluster's node ids, with a summary line below it, and a line on discovery where there is discovery. While the cluster grows, a
 * line above the table names the holders with narrower unique ids. While it shrinks, a line below names the holders of node ids beyond its size.
 */
export function statusTable(status: PagedCluster, options: StatusTableOptions): string[] {
  const { screen, maxLines = Number.POSITIVE_INFINITY, discovery } = options;
  const { nodes, cluster, page } = status;
  const head = headLine(nodes, cluster.idWidth, screen);
  const draining = drainingLine(status, screen);
  const overhead = (discovery === undefined ? 2 : 3) + head.length + draining.length + (page === null ? 0 : 1);
  const all = nodes.length + overhead <= maxLines;
  // One more line is for the note that says how many are left out.
  const shown = all ? nodes : mostTelling(status, Math.max(1, maxLines - overhead - (page === null ? 1 : 0)));
  const announced = discovery && new Map(discovery.nodes.map((node) => [node.id, node]));
  const rows = shown.map((node) => row(node, cluster, announced));
  // A terminal has no room for an empty column; programs that read a pipe want the same columns every time.
  const spared = screen !== undefined && shown.every((node) => problemOf(node, cluster) === undefined);
  const columns = [...LEASE_COLUMNS, ...(discovery === undefined ? [] : [DISCOVERY_COLUMN]), ...(spared ? [] : [PROBLEM_COLUMN])];
  const note = page === null ? leftOut(nodes.length - shown.length) : pageLine(page, cluster.size, shown.length);
  return [
    ...head,
    ...renderTable(columns, rows, screen),
    ...note.map((text) => fitLine(text, screen, 'dim')),
    ...draining,
    summaryLine(status, screen),
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

/**
 * The line above a table of node ids, while their number grows: the live holders whose unique ids are narrower than they are to be. None where
 * there are no such holders.
 */
export function headLine(nodes: readonly NodeStatus[], idWidth: number, screen: Screen | undefined): string[] {
  const holders = nodes
    .filter((node) => node.state === 'held' && node.problem === undefined && (node.idWidth ?? MIN_ID_WIDTH) < idWidth)
    .map((node) => ({ id: node.id, taskId: node.taskId ?? '', idWidth: node.idWidth }));
  if (holders.length === 0) return [];
  const wanted = `growing: node ids are to take ${idWidth} bits in unique ids`;
  return [fitLine(`${wanted}, ${pluralize(holders.length, 'holder')} not there yet: ${holdersText(holders)}`, screen, 'yellow')];
}

/** Who holds which node id, and makes ids of how many bits: `0 (task-a, 8 bits), 7 (task-b, does not say)`. */
export function holdersText(holders: readonly NarrowHolder[]): string {
  const width = (bits: number | undefined) => (bits === undefined ? 'does not say' : pluralize(bits, 'bit'));
  return someOf(holders.map(({ id, taskId, idWidth }) => `${id} (${taskId}, ${width(idWidth)})`));
}

/** The line on the holders of node ids beyond the cluster's size. */
function drainingLine({ draining }: PagedCluster, screen: Screen | undefined): string[] {
  if (draining.length === 0) return [];
  const holders = someOf(draining.map(({ id, taskId }) => `${id} (${taskId ?? 'nobody knows whom'})`));
  return [fitLine(`draining: ${pluralize(draining.length, 'node id')} beyond the cluster's size held still: ${holders}`, screen, 'yellow')];
}

/** The line that counts the node ids. A narrow terminal gets less of the settings, but is told that the counts come from a LIST. */
function summaryLine(status: PagedCluster, screen: Screen | undefined): string {
  const columns = screen?.columns ?? Number.POSITIVE_INFINITY;
  const { cluster } = status;
  const bits = pluralize(cluster.idWidth, 'bit');
  const settings = `; duration ${formatSetting(cluster.durationMs)}, grace ${formatSetting(cluster.graceMs)}`;
  const ends = [`${settings}, node ids ${bits} wide`, `${settings}, node ids ${bits}`, settings, ...(status.totals.hints ? [''] : [])];
  const plain = counts(status, (text) => text);
  const fitting = ends.find((end) => plain.length + end.length <= columns);
  return fitting === undefined ? cut(plain + (ends.at(-1) ?? ''), columns) : counts(status, paintFor(screen)) + fitting;
}

function counts({ totals }: PagedCluster, paint: Paint): string {
  const { held, free, neverHeld, expired } = totals;
  const damaged = paint(`damaged ${totals.damaged}`, totals.damaged > 0 ? 'red' : undefined);
  const rare = (['evicted', 'retired'] as const).map((state) => (totals[state] ? `, ${state} ${totals[state]}` : '')).join('');
  const counts = `held ${held}, free ${free}${totals.hints ? ` (${neverHeld} never held)` : ''}, expired ${expired}, ${damaged}${rare}`;
  return totals.hints ? `by a LIST: ${counts}` : counts;
}

/** One line on the discovery tree: `discovery: ok`, `discovery: degraded (why)`. */
export function discoverySummary({ problem }: DiscoveryStatusReport, screen: Screen | undefined): string {
  if (problem === null) return `discovery: ${paintFor(screen)('ok', 'green')}`;
  return fitLine(`discovery: degraded (${problem})`, screen, 'yellow');
}

function row(node: NodeStatus, cluster: ClusterStatus['cluster'], announced: ReadonlyMap<number, NodeDiscovery> | undefined): Cell[] {
  const problem = problemOf(node, cluster);
  return [
    { text: String(node.id) },
    { text: node.state, color: problem === undefined ? STATES[node.state][0] : 'red' },
    { text: node.version === 0 ? '-' : String(node.version), color: node.version === 0 ? 'dim' : undefined },
    { text: node.taskId ?? '' },
    { text: ageText(node.age) },
    expiryCell(node),
    ...(announced === undefined ? [] : [discoveryCell(announced.get(node.id))]),
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

/** The node ids with most to tell: damaged ones first, then by the rank of their state; in ascending order. */
function mostTelling(status: ClusterStatus, limit: number): NodeStatus[] {
  const rank = (node: NodeStatus) => (problemOf(node, status.cluster) === undefined ? STATES[node.state][1] : 0);
  return [...status.nodes]
    .sort((a, b) => rank(a) - rank(b) || a.id - b.id)
    .slice(0, limit)
    .sort((a, b) => a.id - b.id);
}
