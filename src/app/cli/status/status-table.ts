import { SETTLING } from '../../../core/lease/model/cluster-config.js';
import { type LateHolder, lateHolders, type NodeStatus } from '../../../core/lease/operate/inspect.js';
import type { Interval } from '../../../core/store/lease-store.js';
import { type AllocatedStatus, widthNeededBy } from '../../../node/monitor/allocated-status.js';
import { type PagedCluster, problemOf, type ScannedNode } from '../../../node/monitor/listed-cluster.js';
import { expiresInMs } from '../../../node/monitor/status-report.js';
import {
  type DiscoveryStatusReport,
  type NodeDiscovery,
  warningOf,
} from '../../../node/wire/status-report.js';
import { hexPair } from '../../../zookeeper/discovery/layout.js';
import { camundaView } from '../../camunda/camunda-report.js';
import { type Cell, type Column, fitLine, renderTable } from '../../kit/answer.js';
import type { Finding } from '../../kit/finding.js';
import type { Screen } from '../../kit/io.js';
import {
  type Color,
  cut,
  formatCluster,
  formatDuration,
  type Paint,
  paintFor,
  pluralize,
  printable,
  someOf,
} from '../../kit/terminal/text.js';

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

/** The width that every holder uses at least, and where a lease is unreadable. */
const MIN_ID_WIDTH = 8;

/** How many digits of the mark of a sticky key are shown: enough to distinguish those of a fleet. */
const MARK_SHOWN = 8;

/** Where a table goes. */
interface StatusTableOptions {
  /** The terminal; undefined for text without colors and without limits. */
  readonly screen: Screen | undefined;
  /** The number of lines in all, the summary included. @default unlimited */
  readonly maxLines?: number | undefined;
  /** How the discovery tree shows the node ids; undefined without discovery. */
  readonly discovery?: DiscoveryStatusReport | undefined;
  /** On what the cluster has next to its leases. */
  readonly finding?: Finding | undefined;
  /** @default none */
  readonly further?: readonly FurtherColumn[];
}

/** A column of the caller's. */
export type FurtherColumn = readonly [column: Column, cellOf: (node: ScannedNode) => Cell];

/** What a table shows, wherever the node ids come from. */
interface NodeTable {
  readonly nodes: readonly ScannedNode[];
  /** What keeps a node id from being used. */
  readonly problemOf: (node: ScannedNode) => string | undefined;
  /** The bits that a node id is to take in unique ids. */
  readonly idWidth: number;
  /** The line on the part of a large cluster that is shown; undefined where all was read. */
  readonly pageLine?: ((shown: number) => string) | undefined;
  /** The lines below. */
  readonly foot: readonly string[];
}

/**
 * The table of a cluster's node ids, with a summary line below it, and a line on discovery where there is
 * discovery. While the cluster grows, a line above the table names the holders with narrower unique ids.
 * While it shrinks, a line below names the holders of node ids beyond its size.
 */
export function statusTable(status: PagedCluster, options: StatusTableOptions): string[] {
  const { nodes, cluster, page, draining, foreign } = status;
  const { screen, discovery, finding } = options;
  const late = foreign ? [] : lateHolders(status);
  const holders = someOf(draining.map(({ id, taskId }) => `${id} (${taskId ?? 'unknown task'})`));
  const beyond = `draining: ${pluralize(draining.length, 'node id')} beyond the cluster's size held still: ${holders}`;
  const more =
    page?.next === null ? '--from ID shows those from there on' : `--from ${page?.next} shows the next`;
  return nodeTable(
    {
      nodes,
      problemOf: (node) => problemOf(node, cluster) ?? warningOf(node.foreign),
      idWidth: cluster.idWidth,
      pageLine: page
        ? (shown) => `… ${shown} of ${cluster.size} node ids (${more}, --all all of them)`
        : undefined,
      foot: [
        draining.length > 0 && fitLine(beyond, screen, 'yellow'),
        late.length > 0 && fitLine(lateText(late), screen, 'yellow'),
        cluster.epoch?.settling && fitLine(SETTLING, screen, 'yellow'),
        summaryLine(status, screen),
        ...(foreign ? camundaView.lines(foreign) : []).map(([text, color]) => fitLine(text, screen, color)),
        finding && fitLine(finding.detail, screen, finding.status === 'fault' ? 'red' : undefined),
        discovery && discoverySummary(discovery, screen),
      ].filter((line) => typeof line === 'string'),
    },
    options,
  );
}

/**
 * The table of the node ids that ZooKeeper has given out, and one summary line below it. Age and expiry stay
 * empty: a session says neither.
 *
 * @param where the servers and the chroot, for people
 */
export function allocatedTable(
  { nodes, groups, idWidth }: AllocatedStatus,
  where: string,
  options: StatusTableOptions,
): string[] {
  if (groups === undefined) {
    const first = 'the first nodelease run --provider zookeeper takes one';
    return [printable(`No node id has been given out at ${where} yet: ${first}.`)];
  }
  const { screen } = options;
  const count = (state: NodeStatus['state']) =>
    nodes.filter((node) => node.problem === undefined && node.state === state).length;
  const damaged = nodes.filter(({ problem }) => problem !== undefined).length;
  const evicted = count('evicted') > 0 ? `, evicted ${count('evicted')}` : '';
  const counts = (paint: Paint) => `held ${count('held')}, ${damagedText(damaged, paint)}${evicted}`;
  const foot = [fittedLine(counts, [`; ${groupsText(groups)}, node ids ${idWidth} bits wide`], screen)];
  // Wider ids of before hold no task up: what makes ids learns of them first.
  const needed = widthNeededBy(groups);
  return nodeTable({ nodes, problemOf: ({ problem }) => problem, idWidth: needed, foot }, options);
}

function nodeTable(
  { nodes, problemOf: problem, idWidth, pageLine, foot }: NodeTable,
  options: StatusTableOptions,
): string[] {
  const { screen, maxLines = Number.POSITIVE_INFINITY, discovery } = options;
  const head = headLine(nodes, idWidth, screen);
  // The titles are a line, too.
  const room = maxLines - 1 - head.length - foot.length - (pageLine ? 1 : 0);
  // One more line is for the note that says how many are left out.
  const shown =
    nodes.length <= room ? nodes : mostImportant(nodes, problem, Math.max(1, pageLine ? room : room - 1));
  const left = nodes.length - shown.length;
  const note =
    pageLine?.(shown.length) ??
    (left > 0 ? `… and ${left} more (nodelease status --all shows them)` : undefined);
  const columns: FurtherColumn[] = [
    [['ID', 'right'], ({ id }) => `${id}`],
    ['STATE', (node) => [node.state, problem(node) === undefined ? STATES[node.state][0] : 'red']],
    [['VERSION', 'right'], ({ version }) => (version === 0 ? ['-', 'dim'] : `${version}`)],
    [['TASK', 12], ({ taskId = '' }) => taskId],
    [['AGE', 'right'], ({ age }) => ageText(age)],
    [['EXPIRES IN', 'right'], expiryCell],
  ];
  if (nodes.some(({ sticky }) => sticky !== undefined))
    columns.push(['STICKY', ({ sticky = '' }) => sticky.slice(0, MARK_SHOWN)]);
  if (nodes.some(({ foreign }) => foreign !== undefined)) columns.push(camundaView.column);
  if (discovery !== undefined) {
    const announced = new Map(discovery.nodes.map((node) => [node.id, node]));
    columns.push(['DISCOVERY', ({ id }) => discoveryCell(announced.get(id))]);
  }
  columns.push(...(options.further ?? []));
  // A terminal has no room for an empty column; programs that read a pipe want the same columns every time.
  if (screen === undefined || shown.some((node) => problem(node) !== undefined))
    columns.push([['PROBLEM', 16], (node) => [problem(node) ?? '', 'red']]);
  const titles = columns.map(([column]) => column);
  const rows = shown.map((node) => columns.map(([, cellOf]) => cellOf(node)));
  return [
    ...head,
    ...renderTable(titles, rows, screen),
    ...(note === undefined ? [] : [fitLine(note, screen, 'dim')]),
    ...foot,
  ];
}

/**
 * The most important node ids: those with a problem first, then by the rank of their state; in ascending
 * order.
 */
function mostImportant(
  nodes: readonly ScannedNode[],
  problem: NodeTable['problemOf'],
  limit: number,
): ScannedNode[] {
  const rank = (node: ScannedNode) => (problem(node) === undefined ? STATES[node.state][1] : 0);
  const ordered = nodes.toSorted((a, b) => rank(a) - rank(b) || a.id - b.id);
  return ordered.slice(0, limit).sort((a, b) => a.id - b.id);
}

/** While the number of node ids grows: the live holders whose unique ids are narrower than they are to be. */
function headLine(nodes: readonly NodeStatus[], idWidth: number, screen: Screen | undefined): string[] {
  const holders = nodes.filter(
    (node) => node.state === 'held' && node.problem === undefined && (node.idWidth ?? MIN_ID_WIDTH) < idWidth,
  );
  if (holders.length === 0) return [];
  const wanted = `growing: node ids are to take ${idWidth} bits in unique ids`;
  const late = `${pluralize(holders.length, 'holder')} not there yet: ${holdersText(holders)}`;
  return [fitLine(`${wanted}, ${late}`, screen, 'yellow')];
}

/**
 * Who holds which node id, and makes ids of how many bits: `0 (task-a, 8 bits), 7 (task-b, 9 bits)`.
 */
export function holdersText(holders: readonly Pick<NodeStatus, 'id' | 'taskId' | 'idWidth'>[]): string {
  return someOf(
    holders.map(
      ({ id, taskId = '', idWidth = MIN_ID_WIDTH }) => `${id} (${taskId}, ${pluralize(idWidth, 'bit')})`,
    ),
  );
}

/** Who has another duration than the settings, and which. */
export function lateText(late: readonly LateHolder[]): string {
  const who = late.map(({ id, taskId, durationMs }) => `${id} (${taskId}, ${formatDuration(durationMs)})`);
  return `${pluralize(late.length, 'holder')} with another duration still: ${someOf(who)}`;
}

/**
 * The line that counts the node ids. A narrow terminal gets less of the settings, but says that the counts
 * come from a LIST.
 */
function summaryLine({ cluster, totals, foreign }: PagedCluster, screen: Screen | undefined): string {
  const { held, free, neverHeld, expired, hints } = totals;
  const rare = (['evicted', 'retired'] as const)
    .map((state) => (totals[state] ? `, ${state} ${totals[state]}` : ''))
    .join('');
  const counts = (paint: Paint) => {
    const unheld = `free ${free}${hints ? ` (${neverHeld} never held)` : ''}, expired ${expired}`;
    return `${hints ? 'by a LIST: ' : ''}held ${held}, ${unheld}, ${damagedText(totals.damaged, paint)}${rare}`;
  };
  if (foreign) {
    const { title, settings } = camundaView;
    return fittedLine((paint) => title + counts(paint), settings(cluster), screen);
  }
  const bits = pluralize(cluster.idWidth, 'bit');
  const settings = `; ${formatCluster(cluster)}`;
  return fittedLine(
    counts,
    [`${settings}, node ids ${bits} wide`, `${settings}, node ids ${bits}`, settings, ...(hints ? [''] : [])],
    screen,
  );
}

function damagedText(damaged: number, paint: Paint): string {
  return paint(`damaged ${damaged}`, damaged > 0 ? 'red' : undefined);
}

/** The counts with the first of the ends that fits the terminal; cut, and without colors, where none does. */
function fittedLine(
  counts: (paint: Paint) => string,
  ends: readonly string[],
  screen: Screen | undefined,
): string {
  const columns = screen?.columns ?? Number.POSITIVE_INFINITY;
  const plain = counts((text) => text);
  const fitting = ends.find((end) => plain.length + end.length <= columns);
  return fitting === undefined
    ? cut(plain + (ends.at(-1) ?? ''), columns)
    : counts(paintFor(screen)) + fitting;
}

/** One line on the discovery tree: `discovery: ok`, `discovery: degraded (why)`. */
export function discoverySummary({ problem }: DiscoveryStatusReport, screen: Screen | undefined): string {
  if (problem === null) return `discovery: ${paintFor(screen)('ok', 'green')}`;
  return fitLine(`discovery: degraded (${problem})`, screen, 'yellow');
}

/** `1 group (00)`, `2 groups (00 to 01)`. */
function groupsText(groups: readonly number[]): string {
  const [first, ...others] = groups.map(hexPair);
  if (first === undefined) return '0 groups';
  return `${pluralize(groups.length, 'group')} (${first}${others.length > 0 ? ` to ${others.at(-1)}` : ''})`;
}

/**
 * An age as exactly as the store gives it: S3 in whole seconds, others to the millisecond. `>` where it is
 * only known how long it has been seen.
 */
function ageText(age: Interval | undefined): string {
  if (age === undefined) return '';
  if (!Number.isFinite(age.max)) return `>${formatDuration(age.min)}`;
  return age.max - age.min > 500 ? `~${formatDuration((age.min + age.max) / 2)}` : formatDuration(age.min);
}

function expiryCell(node: NodeStatus): Cell {
  const expiresIn = expiresInMs(node);
  if (expiresIn === undefined) return '';
  const bound = node.age?.max === Number.POSITIVE_INFINITY ? '<' : '';
  if (expiresIn > 0) return `${bound}${formatDuration(expiresIn)}`;
  return [node.state === 'expired' ? 'expired' : 'in grace', 'yellow'];
}

function discoveryCell(node: NodeDiscovery | undefined): Cell {
  if (node === undefined) return '';
  if (node.state === 'ok') return ['ok', 'green'];
  if (node.state === 'unknown') return ['?', 'dim'];
  return node.state === 'other-version' ? [`version ${node.version}`, 'yellow'] : [node.state, 'red'];
}
