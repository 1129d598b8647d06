import type { ClusterPart } from '../kit/cluster-part.js';
import { SHARDS_PART } from '../shards/shards-part.js';

/** What a cluster may have in a store next to its leases. */
const PARTS: readonly ClusterPart[] = [SHARDS_PART];

export const readParts: ClusterPart['read'] = async (...at) =>
  (await Promise.all(PARTS.map((part) => part.read(...at)))).flat();

export const repairParts: ClusterPart['repair'] = async (...at) =>
  (await Promise.all(PARTS.map((part) => part.repair(...at)))).flat();
