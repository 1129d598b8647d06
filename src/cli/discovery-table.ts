import { hexPair } from '../discovery/tree-paths.js';
import { groupOf, indexOf } from '../id/cluster-node-id.js';
import type { DiscoveryReport, EntryReport } from '../monitor/discovery-report.js';
import { paintFor } from './color.js';
import type { Screen } from './io.js';
import { type Cell, type Column, renderTable } from './table.js';
import { pluralize, printable } from './text.js';

const COMMON: readonly Column[] = [
  { title: 'VERSION', align: 'right' },
  { title: 'TASK', minWidth: 12 },
  { title: 'SERVICE', minWidth: 8 },
  { title: 'ADDRESS', minWidth: 12 },
  { title: 'SESSION' },
  { title: 'PROBLEM', minWidth: 16 },
];

/** From how many characters in a line on an IPv4 address and its port are shown whole. */
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

/** A part of the tree as tables: nodes, services, endpoints, whichever there are; one summary line below them. */
export function discoveryTables(report: DiscoveryReport, screen: Screen | undefined): string[] {
  const { nodes, services, endpoints, foreign } = report;
  const paint = paintFor(screen?.color ?? false);
  const tables: [readonly Column[], (readonly Cell[])[]][] = [
    [NODE_COLUMNS, nodes.map((node) => [number(node.nodeId), { text: znodeName(node.clusterNodeId) }, ...common(node, true)])],
    [
      SERVICE_COLUMNS,
      services.flatMap(({ service, nodes: members }) =>
        members.length === 0
          ? [[{ text: service }, NOBODY]]
          : members.map((member) => [{ text: service }, number(member.nodeId), ...common(member, false)]),
      ),
    ],
    [
      ENDPOINT_COLUMNS,
      endpoints.flatMap(({ endpoint, keys }) =>
        keys.length === 0
          ? [[{ text: endpoint }, NOBODY]]
          : keys.flatMap(({ key, refs }) =>
              refs.length === 0
                ? [[{ text: endpoint }, { text: key }, NOBODY]]
                : refs.map((ref) => [{ text: endpoint }, { text: key }, { text: ref.ref }, ...common(ref, false)]),
            ),
      ),
    ],
    [[{ title: 'FOREIGN ZNODE', minWidth: 16 }], foreign.map((path) => [{ text: path, color: 'dim' as const }])],
  ];
  return [
    ...tables
      .filter(([, rows]) => rows.length > 0)
      .flatMap(([columns, rows]) => [...renderTable(fitting(columns, rows, screen), rows, { width: screen?.columns, paint }), '']),
    summary(report),
  ];
}

/** Where an address and a port are, as one writes them. */
export function formatAddress({ address, port }: Pick<EntryReport, 'address' | 'port'>): string {
  if (address === null) return port === null ? '' : `:${port}`;
  const host = address.includes(':') && port !== null ? `[${address}]` : address;
  return port === null ? host : `${host}:${port}`;
}

/** Group and index, as the znode's path has them. */
export function znodeName(clusterNodeId: number): string {
  return `${hexPair(groupOf(clusterNodeId))}/${hexPair(indexOf(clusterNodeId))}`;
}

const NOBODY: Cell = { text: '-', color: 'dim' };

function number(value: number | null): Cell {
  return value === null ? NOBODY : { text: String(value) };
}

function common(entry: EntryReport, withService: boolean): Cell[] {
  const session: Cell = entry.sessionId === null ? { text: 'none', color: 'yellow' } : { text: entry.sessionId, color: 'dim' };
  return [
    number(entry.version),
    { text: entry.taskId ?? '' },
    ...(withService ? [{ text: entry.service ?? '' }] : []),
    { text: formatAddress(entry) },
    session,
    { text: entry.problem ?? '', color: 'red' },
  ];
}

/** A terminal has no room for a column of problems that is empty; whoever reads a pipe wants the same columns every time. */
function fitting(columns: readonly Column[], rows: readonly (readonly Cell[])[], screen: Screen | undefined): readonly Column[] {
  if (screen === undefined) return columns;
  const last = columns.length - 1;
  const empty = columns[last]?.title === 'PROBLEM' && rows.every((row) => (row[last]?.text ?? '') === '');
  const shown = empty ? columns.slice(0, -1) : columns;
  // An address is worth more whole than a task is, as long as both can be recognised.
  return screen.columns < WIDE ? shown : shown.map((column) => (column.title === 'ADDRESS' ? { ...column, minWidth: 21 } : column));
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
