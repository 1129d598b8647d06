import { orAborted } from '../base/abort.js';
import type { Clock } from '../clock.js';
import { DISCOVERY_PATH } from '../discovery/tree-paths.js';
import { explain } from '../errors.js';
import type { NodeStatus } from '../lease/inspect.js';
import type { ZooKeeper } from '../zookeeper/zookeeper.js';
import { type DiscoveryStatus, discoveryStatus, type NodeDiscovery, unknownDiscovery } from './discovery-glance.js';
import { type DiscoveryReport, discoveryReport } from './discovery-report.js';
import { type DiscoveryEntry, readDiscovery } from './discovery-snapshot.js';

/** How long a look waits for a connection, in milliseconds; less after one that waited in vain. */
const CONNECTED_WITHIN_MS = { first: 2_000, again: 500 };
/** From one look to the next, in milliseconds, at the least. */
const LEAST_PAUSE_MS = 2_000;
/** So many times as long as a look took nobody looks again: the tree is one request for each znode. */
const REST = 4;

/** The discovery tree as it was seen last. Looks at it never reject: that it cannot be read is something to show. */
export class ClusterTree {
  /** Null while it cannot be read. */
  report: DiscoveryReport | null = null;
  /** How far it agrees with the node ids that are held; undefined before the first look has ended. */
  status: DiscoveryStatus | undefined;

  constructor(
    private readonly zookeeper: Pick<ZooKeeper, 'whenConnected' | 'children' | 'read'>,
    /** The connect string. */
    private readonly where: string,
    private readonly clock: Clock,
  ) {}

  /**
   * Looks once. Resolves with the pause after it, in milliseconds.
   *
   * @param held the node ids that are held, as of now
   * @throws `signal.reason`
   */
  async look(held: () => readonly NodeStatus[], signal: AbortSignal): Promise<number> {
    const begun = this.clock.monotonic();
    // As of before: a task that takes an id meanwhile may well be announced only after this look.
    const before = held();
    const timeoutMs = this.report === null && this.status !== undefined ? CONNECTED_WITHIN_MS.again : CONNECTED_WITHIN_MS.first;
    try {
      await this.zookeeper.whenConnected({ timeoutMs, signal });
      const snapshot = await orAborted(readDiscovery(this.zookeeper, DISCOVERY_PATH, signal), signal);
      const after = held();
      this.report = discoveryReport(this.where, DISCOVERY_PATH, snapshot);
      this.status = agreement(before.length === 0 ? after : before, snapshot?.entries ?? []);
    } catch (error) {
      signal.throwIfAborted();
      this.report = null;
      this.status = unknownDiscovery(held(), explain(error));
    }
    return Math.max(LEAST_PAUSE_MS, REST * (this.clock.monotonic() - begun));
  }
}

/** Whether the tree shows the node ids that are held under the versions of their leases. */
function agreement(held: readonly NodeStatus[], entries: readonly DiscoveryEntry[]): DiscoveryStatus {
  const shown = new Map(entries.flatMap((entry) => (entry.place.kind === 'node' ? [[entry.place.nodeId, entry] as const] : [])));
  return discoveryStatus(held.map((node) => [node.id, nodeDiscovery(node, shown.get(node.id))]));
}

function nodeDiscovery({ version }: NodeStatus, entry: DiscoveryEntry | undefined): NodeDiscovery {
  if (entry === undefined) return { state: 'missing' };
  const shown = entry.assignment?.version;
  if (shown === undefined) return { state: 'unreadable' };
  return { state: shown === version ? 'ok' : 'other-version', version: shown };
}
