/** Revisions by their contexts. */
export type Revisions = Readonly<Record<string, number>>;

/** Which revisions the nodes of a configuration run. All of it can be written as JSON. */
export interface FleetReport {
  /** The most specific context. */
  readonly context: string;
  /** The current ones, by context; of overrides only where a node has some. */
  readonly revisions: Revisions;
  /** In the order of their ids; those without a connection are missing. */
  readonly nodes: readonly NodeRevisions[];
}

/** What a node says of the configuration that it runs. */
export interface NodeRevisions {
  readonly nodeId: number;
  /** By context. */
  readonly revisions: Revisions;
  /** When the node had them, ISO 8601, by its clock. */
  readonly at: string;
  /** The contexts of which it runs an earlier revision than the current one. */
  readonly behind: readonly string[];
}
