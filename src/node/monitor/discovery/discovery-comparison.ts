import { orAborted } from '../../../core/base/abort.js';
import type { Clock } from '../../../core/base/clock.js';
import { explain, NodeLeaseError } from '../../../core/base/errors.js';
import type { ClusterStatus, NodeStatus } from '../../../core/lease/operate/inspect.js';
import { concurrentCalls } from '../../../zookeeper/client/call-limits.js';
import type { ZnodeReader, ZooKeeper } from '../../../zookeeper/client/zookeeper.js';
import { isFault } from '../../../zookeeper/client/zookeeper.js';
import { DISCOVERY_PATH, decodeAssignment, entryPath } from '../../../zookeeper/discovery/layout.js';
import type { TreeParts, TreeReport } from '../../wire/cluster-snapshot.js';
import type { DiscoveryStatusReport, NodeDiscovery } from '../../wire/status-report.js';
import {
  type DiscoveryEntry,
  discoveryReport,
  readDiscovery,
  type TreeReader,
} from './discovery-snapshot.js';

/**
 * How long a scan waits for ZooKeeper, in milliseconds: less after a scan without an answer, so that the next
 * scans of a watch come in time.
 */
const TIMEOUT_MS = { usual: 2_000, afterFailure: 500 };
/** The texts for the node ids in these states. */
const PROBLEMS = {
  missing: 'missing',
  'other-version': 'shown with another version',
  'other-task': 'shown for another task',
  unreadable: 'unreadable',
};

/** Compares the held node ids with their znodes. Resolves within about two seconds, also without an answer. */
export type CompareDiscovery = (status: ClusterStatus | undefined) => Promise<DiscoveryStatusReport>;

/** How to compare, again and again, without a delay of the report on the leases. */
export function discoveryComparison(zookeeper: ZooKeeper, clock: Clock): CompareDiscovery {
  let timeoutMs = TIMEOUT_MS.usual;
  const find = async (node: NodeStatus, leftMs: number): Promise<NodeDiscovery> => {
    try {
      const znode = await zookeeper.read(entryPath({ kind: 'node' }, node.id), { timeoutMs: leftMs });
      return compared(node, znode && { assignment: decodeAssignment(znode.data) });
    } catch (error) {
      if (isFault(error, 'no-auth')) return { id: node.id, state: 'unreadable', version: null };
      throw error;
    }
  };
  return async (status) => {
    const held = heldOf(status?.nodes ?? []);
    try {
      const begun = clock.monotonic();
      await zookeeper.whenConnected({ timeoutMs });
      const leftMs = () => Math.max(1, timeoutMs - (clock.monotonic() - begun));
      const found = await concurrentCalls(held, (node) => find(node, leftMs()));
      timeoutMs = TIMEOUT_MS.usual;
      return discoveryStatus(found);
    } catch (error) {
      if (!(error instanceof NodeLeaseError)) throw error;
      timeoutMs = TIMEOUT_MS.afterFailure;
      return unknownDiscovery(held, error);
    }
  };
}

/**
 * How the parts of ZooKeeper's tree are read that are followed in addition to the discovery tree, by their names
 * in the report. A part that cannot be read is null there.
 */
export type FollowedParts = {
  readonly [Name in keyof TreeParts]?:
    | ((zookeeper: ZnodeReader, signal: AbortSignal, connect: string) => Promise<TreeParts[Name]>)
    | undefined;
};

/**
 * Reads the whole discovery tree, and compares it with the held node ids. If the tree cannot be read, the
 * report is null, and the status has the reason.
 *
 * @param nodes the node ids at this moment
 * @throws `signal.reason`
 */
export async function scanTree(
  zookeeper: TreeReader & Pick<ZooKeeper, 'whenConnected'>,
  { connect, parts }: { readonly connect: string; readonly parts: FollowedParts },
  nodes: () => readonly NodeStatus[],
  signal: AbortSignal,
): Promise<{ readonly report: TreeReport | null; readonly status: DiscoveryStatusReport }> {
  // The state before the scan: a task that takes an id meanwhile may be announced only after it.
  const before = heldOf(nodes());
  try {
    await zookeeper.whenConnected({ timeoutMs: TIMEOUT_MS.usual, signal });
    const snapshot = await orAborted(readDiscovery(zookeeper, DISCOVERY_PATH, signal), signal);
    const read: Record<string, unknown> = {};
    for (const [name, part] of Object.entries(parts))
      if (part)
        read[name] = await orAborted<unknown>(part(zookeeper, signal, connect), signal).catch(() => null);
    signal.throwIfAborted();
    const held = before.length === 0 ? heldOf(nodes()) : before;
    const shown = new Map(
      snapshot?.entries.map((entry) => [
        entry.parsed.kind === 'node' ? entry.parsed.nodeId : undefined,
        entry,
      ]),
    );
    const status = discoveryStatus(held.map((node) => compared(node, shown.get(node.id))));
    return {
      report: { ...discoveryReport(connect, DISCOVERY_PATH, snapshot), ...read },
      status,
    };
  } catch (error) {
    signal.throwIfAborted();
    return { report: null, status: unknownDiscovery(heldOf(nodes()), error) };
  }
}

function heldOf(nodes: readonly NodeStatus[]) {
  return nodes.filter(({ state }) => state === 'held');
}

/** @param znode undefined for an absent znode */
function compared(
  { id, version: expected, taskId }: NodeStatus,
  znode: Pick<DiscoveryEntry, 'assignment'> | undefined,
): NodeDiscovery {
  if (znode === undefined) return { id, state: 'missing', version: null };
  const { version = null, taskId: shown } = znode.assignment ?? {};
  if (version === null) return { id, state: 'unreadable', version };
  if (version !== expected) return { id, state: 'other-version', version };
  return shown === taskId ? { id, state: 'ok', version } : { id, state: 'other-task', version: null };
}

/** The problem names what is wrong with the tree, as a clause. */
function discoveryStatus(nodes: readonly NodeDiscovery[]): DiscoveryStatusReport {
  const problems = Object.entries(PROBLEMS).flatMap(([wrong, what]) => {
    const { length } = nodes.filter(({ state }) => state === wrong);
    return length > 0 ? [`${length} ${what}`] : [];
  });
  if (problems.length === 0) return { state: 'ok', problem: null, nodes };
  return { state: 'degraded', problem: `of ${nodes.length} held node ids ${problems.join(', ')}`, nodes };
}

function unknownDiscovery(held: readonly NodeStatus[], error: unknown): DiscoveryStatusReport {
  return {
    state: 'degraded',
    problem: explain(error),
    nodes: held.map(({ id }) => ({ id, state: 'unknown', version: null })),
  };
}
