// What `/api/services` sends to the page of services. These shapes are here because the page is compiled
// for browsers, without the server's types; the server writes by them.

/** The first event, `hello`. */
export interface ServicesHello {
  /** The connect string. */
  readonly zookeeper: string;
  /** The parent of all services, within the chroot. */
  readonly path: string;
  /** Whether clients with the token may change anything. */
  readonly writes: boolean;
}

/** The event `status`: how far the tree of services is known. */
export interface ServicesStatus {
  readonly state: 'ok' | 'failing';
  /** Why it cannot be read. */
  readonly problem: string | null;
  /** Whether all of it has been read once. */
  readonly isWhole: boolean;
  /** Whether there is more than is followed: 10,000 services and instances. */
  readonly isPartial: boolean;
}

/** The event `entries`: new or different ones, and the paths of the ones that have gone. */
export interface ServiceChanges {
  readonly set: readonly (readonly [path: string, entry: ServiceEntry])[];
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
  /** The session that it goes with, 16 hex digits; null for a persistent znode. */
  readonly sessionId: string | null;
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

/** What a payload says of a lease: in itself, or as texts in the metadata of Spring's. */
export interface LeaseClaim {
  readonly nodeId: number;
  readonly version: number | null;
}
