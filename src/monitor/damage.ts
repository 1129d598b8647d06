import type { ClusterStatus, NodeStatus } from '../lease/inspect.js';

/** A lease object that cannot be used. */
export interface Damage {
  readonly id: number;
  /** What is wrong with it, as a sentence without its full stop. */
  readonly problem: string;
}

/** What keeps a node id from being used; undefined for one that is fine. Before bootstrap is complete an absent object is a vacancy. */
export function problemOf(node: NodeStatus, cluster: ClusterStatus['cluster']): string | undefined {
  if (node.state === 'absent') return cluster.bootstrapped ? 'lease object is absent although the cluster is bootstrapped' : undefined;
  return node.problem;
}

/** Every damaged lease object of a cluster, in ascending order of the ids. */
export function damageOf({ cluster, nodes }: ClusterStatus): Damage[] {
  return nodes.flatMap((node) => {
    const problem = problemOf(node, cluster);
    return problem === undefined ? [] : [{ id: node.id, problem }];
  });
}
