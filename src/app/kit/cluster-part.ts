import type { ClusterConfig } from '../../core/lease/model/cluster-config.js';
import type { SessionCall, StoreSession } from '../../core/lease/session/store-session.js';
import type { Io } from './terminal/io.js';

/** What a product keeps in a store next to the leases, for the commands on a whole cluster. */
export interface ClusterPart {
  /** Empty for a cluster without it. @throws {StoreError} */
  read(session: StoreSession, config: ClusterConfig, call: SessionCall): Promise<readonly PartReport[]>;
  /** Mends it, once all leases are sound. Empty where that is not due. @throws {StoreError} */
  repair(session: StoreSession, io: Io): Promise<readonly PartReport[]>;
}

/** What was read, or mended. */
export interface PartReport {
  /** The field of the report in the JSON of the command. */
  readonly name: string;
  readonly report: object;
  readonly status: 'ok' | 'warning' | 'fault';
  /** In one line. */
  readonly text: string;
}
