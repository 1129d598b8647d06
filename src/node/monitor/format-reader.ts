import type { ClusterConfig } from '../../core/lease/model/cluster-config.js';
import type { LeaseReading, NodeStatus } from '../../core/lease/operate/inspect.js';
import type { StoreSession } from '../../core/lease/session/store-session.js';
import type { ListedObject, StoredObject } from '../../core/store/lease-store.js';
import type { ForeignNode, ForeignReport } from '../wire/status-report.js';
import type { LeaseChange } from './lease-changes.js';

/** Reads lease objects in one format. */
export interface FormatReader {
  /** Maximum size of a lease object without a holder, in bytes. Every held lease is larger. */
  readonly tombstoneMaxBytes: number;
  /** Decodes a lease object. Never throws. */
  readingOf(object: StoredObject | undefined): LeaseReading;
}

/**
 * Reads a cluster in a foreign format. It remembers the facts of its own readings that the lease does not
 * contain, and the previous scans.
 */
export interface ForeignReader extends FormatReader {
  /**
   * Whether node ids below the size may lack an object for good. Such an id is absent, never vacant, and costs
   * no request.
   */
  readonly hasGaps: boolean;
  /** Whether an object may have been written again although its etag is the same. */
  mayRepeatEtag(row: ListedObject | undefined): boolean;
  /** The settings with which the leases are shown like those of nodelease, by the complete listing. */
  configOf(objects: readonly ListedObject[]): ClusterConfig;
  /** What the report on the cluster has in addition. @throws {StoreError} */
  report(session: StoreSession, signal?: AbortSignal): Promise<ForeignReport>;
  /** The settings, with what the lease objects say of them. */
  refined(config: ClusterConfig, known: Iterable<{ readonly reading: LeaseReading }>): ClusterConfig;
  /** What the report on a node id has in addition; undefined if the object cannot be read. */
  nodeOf(id: number, reading: LeaseReading): ForeignNode | undefined;
  /** What went wrong since the last call, other than changes of leases. */
  changes(nodes: readonly NodeStatus[]): readonly LeaseChange[];
}
