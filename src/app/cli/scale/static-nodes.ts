import { concurrently, REQUESTS_AT_ONCE } from '../../../core/base/concurrently.js';
import { leaseKey } from '../../../core/lease/model/lease-state.js';
import { readingOf } from '../../../core/lease/operate/inspect.js';
import type { StoreSession } from '../../../core/lease/session/store-session.js';
import { readDiscovery, type TreeReader } from '../../../node/monitor/discovery/discovery-snapshot.js';
import { NODES_PATH } from '../../../zookeeper/discovery/tree-paths.js';

/**
 * A node id that is announced by a task that does not hold its lease: a fixed one, or what a session has left
 * that is about to end.
 */
interface StaticNode {
  readonly id: number;
  /** Undefined where the announcement does not say. */
  readonly taskId: string | undefined;
}

interface StaticNodesOptions {
  readonly zookeeper: TreeReader;
  readonly session: StoreSession;
  /** The first node id that is of interest, and the first one that is not any more. */
  readonly ids: readonly [from: number, to: number];
  readonly signal?: AbortSignal | undefined;
}

/**
 * The node ids that are announced in the discovery tree and not held in the store, in ascending order: as of
 * the reading, which is one moment for each. A lease object that cannot be understood counts as held.
 *
 * @throws {ZooKeeperError} when there is no answer, or the nodes may not be read
 * @throws {StoreError} when the store gives no answer
 */
export async function staticNodes({
  zookeeper,
  session,
  ids: [from, to],
  signal,
}: StaticNodesOptions): Promise<StaticNode[]> {
  const tree = await readDiscovery(zookeeper, NODES_PATH, signal);
  const announced = (tree?.entries ?? []).flatMap(({ parsed, assignment }) =>
    parsed.kind === 'node' && parsed.nodeId >= from && parsed.nodeId < to
      ? [{ id: parsed.nodeId, taskId: assignment?.taskId }]
      : [],
  );
  const isStatic = await concurrently(announced, REQUESTS_AT_ONCE, async ({ id }) => {
    const reading = readingOf(await session.read(leaseKey(id), { signal }));
    return reading.kind === 'absent' || (reading.kind === 'lease' && reading.lease.kind !== 'held');
  });
  return announced.filter((_, index) => isStatic[index]).sort((a, b) => a.id - b.id);
}
