import type { Diagnosis } from './diagnosis.js';
import type { ZooKeeperDiagnosis } from './zookeeper-diagnosis.js';

/** What `doctor --json` prints where node ids come from ZooKeeper alone: the fields of {@link Diagnosis}, with nothing to say of a store. */
export interface AllocatedDiagnosis extends Omit<Diagnosis, 'store'> {
  readonly store: null;
  readonly zookeeper: ZooKeeperDiagnosis;
}

/** The diagnosis of ZooKeeper as that of everything that the node ids rest on. */
export function allocatedDiagnosis(zookeeper: ZooKeeperDiagnosis): AllocatedDiagnosis {
  const nothing = { findings: [], latencyMs: null, clockOffsetMs: null, cluster: null, cost: null, damaged: [] };
  return { store: null, ok: zookeeper.ok, ...nothing, zookeeper };
}
