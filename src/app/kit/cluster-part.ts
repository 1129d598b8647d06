import type { ClusterConfig } from '../../core/lease/model/cluster-config.js';
import type { SessionCall, StoreSession } from '../../core/lease/session/store-session.js';
import type { Io } from './terminal/io.js';

/** What a product keeps in a store next to the leases, for the commands on a whole cluster. */
export interface ClusterPart {
  /** Its field in their JSON. */
  readonly name: string;
  /** Reads it. Undefined for a cluster without. @throws {StoreError} */
  read(session: StoreSession, config: ClusterConfig, call: SessionCall): Promise<PartReading | undefined>;
  /** Mends it once all leases are sound. Undefined where that is not due. @throws {StoreError} */
  repair(session: StoreSession, io: Io): Promise<PartRepair | undefined>;
}

/** What was read of a part. */
export interface PartReading {
  readonly status: 'ok' | 'warning' | 'fault';
  /** In one line. */
  readonly text: string;
  readonly report: object;
}

/** What was mended. */
export type PartRepair = Pick<PartReading, 'text' | 'report'>;
