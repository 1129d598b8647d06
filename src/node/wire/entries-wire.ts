// What `/api/services` and `/api/configurations` send to their pages.
import type { NodeRevisions } from '../../zookeeper/configuration/fleet-report.js';
import type { LeaseClaim } from '../../zookeeper/services/instance/lease-claim.js';

/** The first event, `hello`. */
export interface EntriesHello {
  /** The connect string. */
  readonly zookeeper: string;
  /** The parent of all services, or contexts, within the chroot. */
  readonly path: string;
  /** Whether clients with the token may change anything. */
  readonly writes: boolean;
}

/** The event `status`: how far the tree is known. */
export interface EntriesStatus {
  readonly state: 'ok' | 'failing';
  /** Why it cannot be read. */
  readonly problem: string | null;
  /** Whether all of it has been read once. */
  readonly isWhole: boolean;
  /** Whether there is more than is followed: 10,000 services and instances. */
  readonly isPartial: boolean;
}

/** The event `entries`: new or different ones, and the paths of the ones that have gone. */
export interface EntryChanges<Entry> {
  readonly set: readonly (readonly [path: string, entry: Entry])[];
  readonly gone: readonly string[];
}

/** A znode of the services' tree. All texts are others' own words. */
export interface ServiceEntry {
  readonly service: string;
  /** Null for the service itself. */
  readonly id: string | null;
  /** Null for a service, and for what is no instance: see `problem`. */
  readonly instance: InstanceFacts | null;
  /** The payload as JSON; of what is no instance the data. At most 2,000 characters. */
  readonly text: string | null;
  /**
   * The session that it goes with, 16 hex digits; null for a persistent znode. While the znode exists, the
   * servers have not ended the session.
   */
  readonly sessionId: string | null;
  /** When its data were written last, by the servers' clock, ISO 8601; null where it has not been read. */
  readonly changedAt: string | null;
  /**
   * The node in the discovery tree with the node id that it claims, or else with its own id as that of the
   * task; null where there is none.
   */
  readonly node: { readonly nodeId: number; readonly version: number; readonly taskId: string } | null;
  /** Present where it is a folder of a Dubbo interface, and nothing is wrong with it. */
  readonly isDubboFolder?: true;
  /** What is wrong with it, as the rest of the sentence "<path> …". */
  readonly problem: string | null;
}

/** What an instance says of itself. */
export interface InstanceFacts {
  readonly id: string;
  readonly address: string | null;
  readonly port: number | null;
  readonly sslPort: number | null;
  readonly serviceType: string;
  /** `out of service` by the status in its metadata, as Spring's load balancer reads it. */
  readonly state: 'enabled' | 'disabled' | 'out of service';
  /** The node id that its payload names. */
  readonly claim: LeaseClaim | null;
  /** What it is for Dubbo, in words; absent if it is not Dubbo's, whose consumers ignore `disabled`. */
  readonly dubbo?: string;
}

/** An entry of `/api/configurations`: a context by its name, a key by `<context>/<key>`. */
export type ConfigEntry = ConfigContext | ConfigKey;

export interface ConfigContext {
  readonly context: string;
  /** The current one; 0 for none. */
  readonly revision: number;
  /** How many it has. */
  readonly keys: number;
  /** The nodes that run it, or should. */
  readonly nodes: readonly ConfigNode[];
  readonly problem: string | null;
}

export interface ConfigNode extends NodeRevisions {
  /** The most specific context that it follows. */
  readonly follows: string;
}

interface ConfigKey {
  readonly context: string;
  readonly key: string;
  /** At most 2,000 characters. */
  readonly value: string;
}

/** What `/api/configurations/<context>?from=3&to=5` answers. */
export interface ConfigHistory {
  /** The kept revisions, the newest first. */
  readonly revisions: readonly {
    readonly revision: number;
    readonly at: string;
    readonly author: string;
    readonly message: string;
    readonly keys: readonly string[];
  }[];
  readonly from: number;
  readonly to: number;
  /** What differs between the two; null: not set. */
  readonly changes: readonly {
    readonly key: string;
    readonly old: string | null;
    readonly new: string | null;
  }[];
}
