import {
  discoveryReport,
  parseDiscoveryPath,
  parsePath,
  readDiscovery,
} from '../../node/monitor/discovery/discovery-snapshot.js';
import type { DiscoveryReport, EntryReport } from '../../node/wire/cluster-snapshot.js';
import { DISCOVERY_PATH, NODES_PATH } from '../../zookeeper/discovery/layout.js';
import { answer, type Cell, type Column, complain, type Table, textOf, withRows } from '../kit/answer.js';
import { onZooKeeper, type ZooKeeperCall } from '../kit/call.js';
import { ExitCode, type Screen, UsageError } from '../kit/io.js';
import { formatAddress, pluralize } from '../kit/terminal/text.js';
import { listLocks } from '../products.js';

/**
 * `nodelease discovery ls [PATH]`: shows the tree, or a part of it. It shows data that it cannot decode as
 * such; a znode that it may not read makes it fail. With `--locks`, it shows locks instead.
 *
 * @throws {ConfigError} when the path is not one of the tree
 */
export async function listDiscovery(
  call: ZooKeeperCall<{ readonly locks?: string }>,
  at?: string,
): Promise<number> {
  const { options, settings, io } = call;
  if (options.locks !== undefined) {
    if (at !== undefined) throw new UsageError(`expected either --locks or the path ${at}`);
    return listLocks(call, options.locks);
  }
  const path = at === undefined ? DISCOVERY_PATH : parseDiscoveryPath(at);
  const where = settings.zookeeper.connect.text;
  return onZooKeeper(call, async (zookeeper, signal) => {
    const snapshot = await readDiscovery(zookeeper, path, signal);
    const report = discoveryReport(where, path, snapshot);
    const { nodes, services, endpoints, foreign } = report;
    const nothing = [nodes, services, endpoints, foreign].every(({ length }) => length === 0);
    let empty: string | undefined;
    if (nothing && path === DISCOVERY_PATH)
      empty = `The discovery tree at ${where} is empty: no task announces anything there.`;
    else if (snapshot && parsePath(path).kind === 'internal')
      empty = `No task announces anything at ${path}: nodelease keeps it for itself.`;
    else if (nothing) empty = `There is nothing at ${path} of ${where}.`;
    answer(call, { report, empty, ...shownTree(report, io.screen()) });
    const [first, ...more] = snapshot?.denied ?? [];
    if (first === undefined) return ExitCode.ok;
    const others = more.length > 0 ? ` and ${more.length} more` : '';
    complain(io, `${first}${others}: no-auth: these credentials may not read the data`);
    return ExitCode.storeUnusable;
  });
}

const COMMON: readonly Column[] = [
  ['VERSION', 'right'],
  ['TASK', 12],
  ['SERVICE', 8],
  ['ADDRESS', 12],
  'SESSION',
  ['PROBLEM', 16],
];
const WITHOUT_SERVICE = COMMON.filter((column) => textOf(column) !== 'SERVICE');

/** From this many columns on, a table has room for an IPv4 address and its port. */
const WIDE = 88;

const NODE_COLUMNS: readonly Column[] = [['NODE ID', 'right'], 'ZNODE', ...COMMON];
const SERVICE_COLUMNS: readonly Column[] = [['SERVICE', 8], ['NODE ID', 'right'], ...WITHOUT_SERVICE];
const ENDPOINT_COLUMNS: readonly Column[] = [['ENDPOINT', 8], ['KEY', 4], ['REF', 8], ...WITHOUT_SERVICE];

/**
 * A part of the tree as tables of nodes, services and endpoints, as far as there are any; one summary line
 * below them.
 */
export function shownTree(report: DiscoveryReport, screen: Screen | undefined) {
  const { nodes, services, endpoints, foreign } = report;
  const tables = withRows(
    [NODE_COLUMNS, nodes.map((node) => [number(node.nodeId), pairOf(node), ...common(node, true)])],
    [
      SERVICE_COLUMNS,
      services.flatMap(({ service, nodes: members }) =>
        orNone([service], members, (member) => [[number(member.nodeId), ...common(member, false)]]),
      ),
    ],
    [
      ENDPOINT_COLUMNS,
      endpoints.flatMap(({ endpoint, keys }) =>
        orNone([endpoint], keys, ({ key, refs }) =>
          orNone([key], refs, (ref) => [[ref.ref, ...common(ref, false)]]),
        ),
      ),
    ],
    [[['FOREIGN ZNODE', 16]], foreign.map((path) => [[path, 'dim']])],
  );
  return {
    tables: tables.map(([columns, rows]): Table => [fitting(columns, rows, screen), rows]),
    lines: [summary(report)],
  };
}

/** The rows of all members, or one without where there are none; `names` come first. */
function orNone<T>(
  names: readonly string[],
  members: readonly T[],
  rowsOf: (member: T) => readonly (readonly Cell[])[],
): (readonly Cell[])[] {
  const rows = members.length === 0 ? [[NONE]] : members.flatMap(rowsOf);
  return rows.map((row) => [...names, ...row]);
}

/** The two hex pairs of a node id, as they are in the path of its znode. */
const pairOf = ({ path }: EntryReport) => path.slice(NODES_PATH.length + 1);

const NONE: Cell = ['-', 'dim'];

function number(value: number | null): Cell {
  return value === null ? NONE : `${value}`;
}

function common(entry: EntryReport, withService: boolean): Cell[] {
  return [
    number(entry.version),
    entry.taskId ?? '',
    ...(withService ? [entry.service ?? ''] : []),
    formatAddress(entry),
    entry.sessionId === null ? ['none', 'yellow'] : [entry.sessionId, 'dim'],
    [entry.problem ?? '', 'red'],
  ];
}

/**
 * A terminal has no room for an empty column of problems; programs that read a pipe want the same columns
 * every time.
 */
function fitting(
  columns: readonly Column[],
  rows: readonly (readonly Cell[])[],
  screen: Screen | undefined,
): readonly Column[] {
  if (screen === undefined) return columns;
  const last = columns.length - 1;
  const empty =
    textOf(columns[last] ?? '') === 'PROBLEM' && rows.every((row) => textOf(row[last] ?? '') === '');
  const shown = empty ? columns.slice(0, -1) : columns;
  // A whole address is worth more than a whole task id.
  return screen.columns < WIDE
    ? shown
    : shown.map((column) => (textOf(column) === 'ADDRESS' ? ['ADDRESS', 21] : column));
}

function summary({ zookeeper, path, nodes, services, endpoints, foreign }: DiscoveryReport): string {
  const members = services.flatMap((service) => service.nodes);
  const refs = endpoints.flatMap(({ keys }) => keys.flatMap((key) => key.refs));
  const troubled = [...nodes, ...members, ...refs].filter(({ problem }) => problem !== null).length;
  const counts = [
    pluralize(nodes.length, 'node'),
    pluralize(services.length, 'service'),
    pluralize(endpoints.length, 'endpoint'),
    ...(troubled > 0 ? [pluralize(troubled, 'problem')] : []),
    ...(foreign.length > 0 ? [pluralize(foreign.length, 'foreign znode')] : []),
  ];
  return `${counts.join(', ')} at ${path} of ${zookeeper}`;
}
