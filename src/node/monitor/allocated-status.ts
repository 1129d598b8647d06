import type { Clock } from '../../core/base/clock.js';
import { widthOfGroup } from '../../core/id/cluster-node-id.js';
import type { NodeStatus } from '../../core/lease/operate/inspect.js';
import { ignoring, type ZooKeeper } from '../../zookeeper/client/zookeeper.js';
import { readTenure } from '../../zookeeper/discovery/allocation/evict-allocated.js';
import { readWidest } from '../../zookeeper/discovery/allocation/width-barrier.js';
import type { Assignment } from '../../zookeeper/discovery/assignment.js';
import { NODES_PATH, parseHexPair } from '../../zookeeper/discovery/tree-paths.js';
import type { AllocationReport, StatusReport } from '../wire/status-report.js';
import type { ClusterScan } from './cluster-reader.js';
import { type DiscoveryEntry, readDiscovery, type TreeReader } from './discovery/discovery-snapshot.js';
import { nodeReport, reportOf } from './status-report.js';

/** The node ids from ZooKeeper alone, as a scan of the tree finds them. */
export interface AllocatedStatus extends Pick<AllocationReport, 'idWidth'> {
  /**
   * The groups of 256 ids whose znodes exist, in ascending order; undefined while there is no tree for them.
   */
  readonly groups: readonly number[] | undefined;
  /**
   * The ids in the tree, in ascending order. Age and expiry, which ZooKeeper does not have, are undefined.
   */
  readonly nodes: readonly NodeStatus[];
}

/**
 * Reads who holds which node id. Changes nothing.
 *
 * Not guaranteed: a snapshot of one instant. The znodes are read one after the other.
 *
 * @throws {ZooKeeperError} when there is no answer, or a group may not be read
 */
export async function inspectAllocated(
  zookeeper: TreeReader,
  signal?: AbortSignal,
): Promise<AllocatedStatus> {
  const names = await zookeeper.children(NODES_PATH, { signal });
  const groups = names
    ?.map(parseHexPair)
    .filter((group) => group !== undefined)
    .sort((a, b) => a - b);
  const snapshot = names && (await readDiscovery(zookeeper, NODES_PATH, signal));
  const nodes =
    snapshot?.entries.flatMap((entry) =>
      entry.parsed.kind === 'node' ? [nodeStatus(entry.parsed.nodeId, entry)] : [],
    ) ?? [];
  const recorded = await readWidest(zookeeper, { signal }).catch(ignoring('no-auth'));
  const widths = [widthNeededBy(groups), recorded ?? 0, ...nodes.map(({ idWidth = 0 }) => idWidth)];
  return { groups, idWidth: Math.max(...widths), nodes: nodes.sort((a, b) => a.id - b.id) };
}

/** How many bits the ids of these groups need. */
export function widthNeededBy(groups: readonly number[] = []): number {
  return widthOfGroup(Math.max(0, ...groups));
}

function nodeStatus(id: number, entry: DiscoveryEntry): NodeStatus {
  const { path, assignment, text, createdZxid, sessionId } = entry;
  const tenure = text === undefined ? undefined : readTenure(text);
  // The number of the transaction is the fencing token, even in the first instant of a tenure, when the data
  // do not have it yet.
  const version = tenure === undefined ? (assignment?.version ?? 0) : Number(createdZxid ?? 0);
  const facts = {
    age: undefined,
    durationMs: undefined,
    timestamp: undefined,
    knownNodes: {},
    idWidth: undefined,
    id,
    version,
    taskId: tenure?.taskId ?? assignment?.taskId,
  };
  if (createdZxid !== undefined && sessionId === undefined) {
    return {
      ...facts,
      state: 'unreadable',
      problem: `persistent: goes with no session, remove ${path} by hand`,
    };
  }
  if (tenure === undefined && assignment === undefined)
    return { ...facts, state: 'unreadable', problem: entry.problem };
  const wrongNode = assignment === undefined ? undefined : entry.problem;
  const state = tenure?.state ?? 'held';
  return { ...facts, state, idWidth: state === 'held' ? widthIn(assignment) : undefined, problem: wrongNode };
}

function widthIn(assignment: Assignment | undefined): number | undefined {
  const idWidth = assignment?.idWidth;
  return typeof idWidth === 'number' && Number.isInteger(idWidth) && idWidth > 0 && idWidth <= 16
    ? idWidth
    : undefined;
}

/** How long a scan waits for a connection, in milliseconds. */
const CONNECT_TIMEOUT_MS = 5_000;

/**
 * Scans the node ids that ZooKeeper gives out: all of them each time.
 *
 * @param where the connect string
 * @throws {ZooKeeperError} when there is no answer, or a group may not be read
 * @throws `signal.reason`
 */
export async function scanAllocated(
  zookeeper: TreeReader & Pick<ZooKeeper, 'whenConnected'>,
  where: string,
  clock: Clock,
  signal: AbortSignal,
): Promise<ClusterScan> {
  await zookeeper.whenConnected({ timeoutMs: CONNECT_TIMEOUT_MS, signal });
  const begun = clock.monotonic();
  const status = await inspectAllocated(zookeeper, signal);
  return {
    nodes: status.nodes,
    head: { allocation: allocationReport(where, status) },
    latencyMs: clock.monotonic() - begun,
    clockOffsetMs: null,
  };
}

/** The report on node ids from ZooKeeper alone. */
export function allocatedReport(zookeeper: string, status: AllocatedStatus): StatusReport {
  return reportOf({
    nodes: status.nodes.map((node) => nodeReport(node, node.problem)),
    allocation: allocationReport(zookeeper, status),
  });
}

function allocationReport(zookeeper: string, { groups = [], idWidth }: AllocatedStatus): AllocationReport {
  return { zookeeper, groups, idWidth };
}
