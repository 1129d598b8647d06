import type { Clock } from '../clock.js';
import type { NodeStatus } from '../lease/inspect.js';
import type { ZooKeeper } from '../zookeeper/zookeeper.js';
import { inspectAllocated } from './allocated-status.js';
import type { ClusterLook, ClusterSource } from './cluster-source.js';
import { allocatedHead } from './status-report.js';

/** How long a look waits for a connection, in milliseconds. */
const CONNECTED_WITHIN_MS = 5_000;

/** Looks again and again at the node ids that ZooKeeper gives out: at all of them each time. */
export class AllocatedReader implements ClusterSource {
  latencyMs: number | null = null;
  #nodes: readonly NodeStatus[] = [];

  constructor(
    private readonly zookeeper: Pick<ZooKeeper, 'whenConnected' | 'children' | 'read'>,
    /** The connect string. */
    private readonly where: string,
    private readonly clock: Clock,
  ) {}

  async look(signal: AbortSignal): Promise<ClusterLook> {
    await this.zookeeper.whenConnected({ timeoutMs: CONNECTED_WITHIN_MS, signal });
    const begun = this.clock.monotonic();
    const status = await inspectAllocated(this.zookeeper, signal);
    this.latencyMs = this.clock.monotonic() - begun;
    // Nobody would be told of what has gone since the look before.
    signal.throwIfAborted();
    const { nodes } = status;
    const present = new Set(nodes.map(({ id }) => id));
    const gone = this.#nodes.filter(({ id }) => !present.has(id)).map(withoutHolder);
    this.#nodes = nodes;
    return {
      nodes,
      gone,
      size: undefined,
      problemOf: ({ problem }) => problem,
      head: () => allocatedHead(this.where, status),
    };
  }

  clockOffsetMs(): null {
    return null;
  }
}

/** An id whose znode is gone: nobody holds it, and its version stays behind. */
function withoutHolder(node: NodeStatus): NodeStatus {
  return { ...node, state: 'released', taskId: undefined, idWidth: undefined, problem: undefined };
}
