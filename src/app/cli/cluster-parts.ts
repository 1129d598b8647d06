import type { ClusterConfig } from '../../core/lease/model/cluster-config.js';
import type { SessionCall, StoreSession } from '../../core/lease/session/store-session.js';
import type { ClusterPart, PartReading, PartRepair } from '../kit/cluster-part.js';
import type { Io } from '../kit/terminal/io.js';
import { SHARDS_PART } from '../shards/shards-part.js';

/** What a cluster may have in a store next to its leases. */
const PARTS: readonly ClusterPart[] = [SHARDS_PART];

type Named<T> = T & Pick<ClusterPart, 'name'>;

/** Reads those that the cluster has. @throws {StoreError} */
export const readParts = (session: StoreSession, config: ClusterConfig, call: SessionCall) =>
  each<PartReading>((part) => part.read(session, config, call));

/** Mends those that need it. @throws {StoreError} */
export const repairParts = (session: StoreSession, io: Io) =>
  each<PartRepair>((part) => part.repair(session, io));

async function each<T>(of: (part: ClusterPart) => Promise<T | undefined>): Promise<Named<T>[]> {
  const all: Named<T>[] = [];
  for (const part of PARTS) {
    const found = await of(part);
    if (found) all.push({ ...found, name: part.name });
  }
  return all;
}
