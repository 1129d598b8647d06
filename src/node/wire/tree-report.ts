import type { FleetReport } from '../../zookeeper/configuration/fleet-report.js';
import type { Standing } from '../../zookeeper/recipes/standing.js';
import type { SharedDataReport } from '../../zookeeper/shared-data/data-report.js';

// For the page, which may import no other room.
export type { Contender, Standing } from '../../zookeeper/recipes/standing.js';
export type { DataEntry, DatumReport, SharedDataReport } from '../../zookeeper/shared-data/data-report.js';
export type { FleetReport };

/** What is followed in ZooKeeper's tree in addition to the discovery tree. */
export interface TreeParts {
  readonly locks: readonly Standing[];
  readonly data: readonly SharedDataReport[];
  readonly configurations: readonly FleetReport[];
}

/** The discovery tree, and the parts that are followed: null while they cannot be read. */
export type TreeReport = DiscoveryReport & {
  readonly [Name in keyof TreeParts]?: TreeParts[Name] | null | undefined;
};

/** What `discovery ls --json` prints: every field is always there, null where there is nothing to say. */
export interface DiscoveryReport {
  /** The connect string. */
  readonly zookeeper: string;
  /** The requested path, within the chroot. */
  readonly path: string;
  /** False when there is nothing at that path. */
  readonly exists: boolean;
  /** In ascending order of the ids. */
  readonly nodes: readonly (EntryReport & { readonly clusterNodeId: number })[];
  /** The requested services, also services that no node offers any more. */
  readonly services: readonly { readonly service: string; readonly nodes: readonly EntryReport[] }[];
  readonly endpoints: readonly { readonly endpoint: string; readonly keys: readonly KeyReport[] }[];
  /** The paths of znodes that do not belong to the tree. */
  readonly foreign: readonly string[];
}

/** A key of an endpoint in a {@link DiscoveryReport}. */
export interface KeyReport {
  /** `_` for the endpoints that have none. */
  readonly key: string;
  readonly refs: readonly (EntryReport & { readonly ref: string })[];
}

/** One announcement in a report. */
export interface EntryReport {
  readonly path: string;
  /** From its name, otherwise from its data; null if neither has it. */
  readonly nodeId: number | null;
  readonly version: number | null;
  readonly taskId: string | null;
  readonly service: string | null;
  readonly address: string | null;
  readonly port: number | null;
  /** 16 hex digits; null for a persistent znode, which belongs to no session. */
  readonly sessionId: string | null;
  /** All fields of its JSON; null if it is not JSON. */
  readonly data: Readonly<Record<string, unknown>> | null;
  readonly problem: string | null;
}
