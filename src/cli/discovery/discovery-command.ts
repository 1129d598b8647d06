import { DISCOVERY_PATH, NODES_PATH } from '../../discovery/tree-paths.js';
import {
  type DiscoveryOptions,
  type DiscoveryReport,
  discoveryReport,
  type EntryReport,
} from '../../monitor/discovery-report.js';
import { parseDiscoveryPath, parsePath, readDiscovery } from '../../monitor/discovery-snapshot.js';
import { ExitCode } from '../exit-codes.js';
import { onZooKeeper, type ZooKeeperCommandSettings } from '../kit/on-zookeeper.js';
import { complain, say, sayJson, sayLines } from '../kit/reported.js';
import type { Io, Screen } from '../terminal/io.js';
import { type Cell, type Column, renderTable } from '../terminal/table.js';
import { formatAddress, pluralize, printable } from '../terminal/text.js';

/**
 * `nodelease discovery ls [PATH]`: shows the tree, or a part of it. It shows data that it cannot decode as
 * such; a znode that it may not read makes it fail. Resolves to the exit code.
 *
 * @throws {ConfigError} when the path is not one of the tree
 */
export async function listDiscoveryCommand(
  at: string | undefined,
  { json }: DiscoveryOptions,
  settings: ZooKeeperCommandSettings,
  io: Io,
): Promise<number> {
  const path = at === undefined ? DISCOVERY_PATH : parseDiscoveryPath(at);
  const where = settings.zookeeper.connect.text;
  return onZooKeeper(settings, io, async (zookeeper, signal) => {
    await zookeeper.whenConnected({ signal });
    const snapshot = await readDiscovery(zookeeper, path, signal);
    const report = discoveryReport(where, path, snapshot);
    const nothing = [report.nodes, report.services, report.endpoints, report.foreign].every(
      ({ length }) => length === 0,
    );
    if (json) sayJson(io, report);
    else if (nothing && path === DISCOVERY_PATH)
      say(io, `The discovery tree at ${where} is empty: no task announces anything there.`);
    else if (snapshot && parsePath(path).kind === 'internal')
      say(io, `No task announces anything at ${path}: nodelease keeps it for itself.`);
    else if (nothing) say(io, `There is nothing at ${path} of ${where}.`);
    else sayLines(io, discoveryTables(report, io.screen()));
    const [first, ...more] = snapshot?.denied ?? [];
    if (first === undefined) return ExitCode.ok;
    complain(
      io,
      `${first}${more.length > 0 ? ` and ${more.length} more` : ''}: no-auth: these credentials may not read the data`,
    );
    return ExitCode.storeUnusable;
  });
}

const COMMON: readonly Column[] = [
  { title: 'VERSION', align: 'right' },
  { title: 'TASK', minWidth: 12 },
  { title: 'SERVICE', minWidth: 8 },
  { title: 'ADDRESS', minWidth: 12 },
  { title: 'SESSION' },
  { title: 'PROBLEM', minWidth: 16 },
];

/** From this many columns on, a table has room for an IPv4 address and its port. */
const WIDE = 88;

const NODE_COLUMNS: readonly Column[] = [{ title: 'NODE ID', align: 'right' }, { title: 'ZNODE' }, ...COMMON];
const SERVICE_COLUMNS: readonly Column[] = [
  { title: 'SERVICE', minWidth: 8 },
  { title: 'NODE ID', align: 'right' },
  ...COMMON.filter(({ title }) => title !== 'SERVICE'),
];
const ENDPOINT_COLUMNS: readonly Column[] = [
  { title: 'ENDPOINT', minWidth: 8 },
  { title: 'KEY', minWidth: 4 },
  { title: 'REF', minWidth: 8 },
  ...COMMON.filter(({ title }) => title !== 'SERVICE'),
];

/**
 * A part of the tree as tables of nodes, services and endpoints, as far as there are any; one summary line
 * below them.
 */
export function discoveryTables(report: DiscoveryReport, screen: Screen | undefined): string[] {
  const { nodes, services, endpoints, foreign } = report;
  const tables: [readonly Column[], (readonly Cell[])[]][] = [
    [
      NODE_COLUMNS,
      nodes.map((node) => [
        number(node.nodeId),
        { text: node.path.slice(NODES_PATH.length + 1) },
        ...common(node, true),
      ]),
    ],
    [
      SERVICE_COLUMNS,
      services.flatMap(({ service, nodes: members }) =>
        orNobody([service], members, (member) => [number(member.nodeId), ...common(member, false)]),
      ),
    ],
    [
      ENDPOINT_COLUMNS,
      endpoints.flatMap(({ endpoint, keys }) =>
        keys.length === 0
          ? orNobody([endpoint], [], () => [])
          : keys.flatMap(({ key, refs }) =>
              orNobody([endpoint, key], refs, (ref) => [{ text: ref.ref }, ...common(ref, false)]),
            ),
      ),
    ],
    [
      [{ title: 'FOREIGN ZNODE', minWidth: 16 }],
      foreign.map((path) => [{ text: path, color: 'dim' as const }]),
    ],
  ];
  const shown = tables.filter(([, rows]) => rows.length > 0);
  return [
    ...shown.flatMap(([columns, rows]) => [...renderTable(fitting(columns, rows, screen), rows, screen), '']),
    summary(report),
  ];
}

/** A row for each member, or one without where there are none; `names` stand first. */
function orNobody<T>(
  names: readonly string[],
  members: readonly T[],
  cells: (member: T) => readonly Cell[],
): (readonly Cell[])[] {
  const first = names.map((text) => ({ text }));
  return members.length === 0 ? [[...first, NOBODY]] : members.map((member) => [...first, ...cells(member)]);
}

const NOBODY: Cell = { text: '-', color: 'dim' };

function number(value: number | null): Cell {
  return value === null ? NOBODY : { text: String(value) };
}

function common(entry: EntryReport, withService: boolean): Cell[] {
  const session: Cell =
    entry.sessionId === null ? { text: 'none', color: 'yellow' } : { text: entry.sessionId, color: 'dim' };
  return [
    number(entry.version),
    { text: entry.taskId ?? '' },
    ...(withService ? [{ text: entry.service ?? '' }] : []),
    { text: formatAddress(entry) },
    session,
    { text: entry.problem ?? '', color: 'red' },
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
  const empty = columns[last]?.title === 'PROBLEM' && rows.every((row) => (row[last]?.text ?? '') === '');
  const shown = empty ? columns.slice(0, -1) : columns;
  // A whole address is worth more than a whole task id.
  return screen.columns < WIDE
    ? shown
    : shown.map((column) => (column.title === 'ADDRESS' ? { ...column, minWidth: 21 } : column));
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
  return printable(`${counts.join(', ')} at ${path} of ${zookeeper}`);
}
