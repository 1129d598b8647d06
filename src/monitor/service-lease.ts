import type { Assignment } from '../discovery/assignment.js';

/** What an instance says of the node id that it goes with. */
export interface LeaseClaim {
  /** The instance's id: its task's, where nodelease has registered it. */
  readonly id: string;
  /** Undefined where its payload names none. */
  readonly nodeId: number | undefined;
  readonly version: number | undefined;
}

/** The node id that an instance goes with. */
export interface ServiceLease {
  readonly nodeId: number;
  readonly version: number | null;
  readonly taskId: string | null;
  /** `payload`: only the instance itself says so, and the discovery tree has nothing of this node id and version. */
  readonly toldBy: 'tree' | 'payload';
  /** The version of the same node id in the discovery tree, where that is another one: another tenure. */
  readonly otherVersion: number | null;
}

/** Finds the lease of an instance; null where neither the discovery tree nor its payload tells of one. */
export type FindLease = (claim: LeaseClaim) => ServiceLease | null;

/** Looks leases up in the nodes of the discovery tree. */
export function leaseFinder(nodes: Iterable<Assignment>): FindLease {
  const all = [...nodes];
  const byId = new Map(all.map((node) => [node.nodeId, node]));
  const byTask = new Map(all.map((node) => [node.taskId, node]));
  return ({ id, nodeId, version = null }) => {
    const node = nodeId === undefined ? byTask.get(id) : byId.get(nodeId);
    if (node !== undefined && (nodeId === undefined || version === null || version === node.version))
      return { nodeId: node.nodeId, version: node.version, taskId: node.taskId, toldBy: 'tree', otherVersion: null };
    return nodeId === undefined ? null : { nodeId, version, taskId: null, toldBy: 'payload', otherVersion: node?.version ?? null };
  };
}

/** What an instance says of its node id: in the payload itself, or as texts in the metadata of Spring's. */
export function claimOf(id: string, payload: unknown): LeaseClaim {
  const fields = Object(payload) as Partial<Record<string, unknown>>;
  const metadata = Object(fields.metadata) as Partial<Record<string, unknown>>;
  return { id, nodeId: countOf(fields.nodeId ?? metadata.nodeId), version: countOf(fields.version ?? metadata.version) };
}

function countOf(value: unknown): number | undefined {
  const count = typeof value === 'string' && /^\d{1,16}$/.test(value) ? Number(value) : value;
  return Number.isSafeInteger(count) && (count as number) >= 0 ? (count as number) : undefined;
}
