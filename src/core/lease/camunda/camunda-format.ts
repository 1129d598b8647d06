/** Camunda 8 writes this object next to its lease objects once all of them exist. */
export const CAMUNDA_MARKER = 'node-ids-initialized';

/** How a cluster of Camunda 8 is recognized. */
export const camundaFormat = {
  name: 'camunda' as const,
  cluster: 'a Camunda cluster',
  lease: 'a lease of Camunda 8',
  marker: CAMUNDA_MARKER,
  /** Since 8.9 the metadata say whether a task may take the id. The body of a held lease shows any version. */
  wrote: (metadata: Readonly<Record<string, string>>, fields: Readonly<Record<string, unknown>>): boolean =>
    metadata.acquirable !== undefined || fields.nodeInstance !== undefined,
};
