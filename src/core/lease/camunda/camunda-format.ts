/** Camunda 8 writes this object next to its lease objects once all of them exist. */
export const CAMUNDA_MARKER = 'node-ids-initialized';

type Facts<T = unknown> = Readonly<Record<string, T>>;

/** How a cluster of Camunda 8 is recognized. */
export const camundaFormat = {
  /** Its name in reports. */
  name: 'camunda' as const,
  /** What is said of a cluster and of a lease, as parts of sentences. */
  cluster: 'this is a Camunda cluster',
  lease: 'is a lease of Camunda 8',
  /** The key of an object that is in every complete cluster, and in no other. */
  marker: CAMUNDA_MARKER,
  /**
   * Whether a lease object is in this format, by its metadata and the fields of its body. Since 8.9 the metadata
   * say whether a task may take the id. The body of a held lease shows every version.
   */
  wrote: (metadata: Facts<string>, fields: Facts) =>
    metadata.acquirable !== undefined || fields.nodeInstance !== undefined,
};
