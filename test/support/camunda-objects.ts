/** An object as Camunda 8.9 writes it. */
export interface CamundaObject {
  readonly key: string;
  readonly body: string;
  readonly metadata: Readonly<Record<string, string>>;
  readonly contentType: string;
}

/** What a holder of Camunda's writes. */
export interface CamundaHolder {
  readonly id: number;
  readonly taskId: string;
  readonly version: number;
  /** When the lease expires by the holder's clock, milliseconds since the Unix epoch. */
  readonly timestamp: number;
  readonly known?: Readonly<Record<number, number>>;
}

const JSON_TYPE = { contentType: 'application/json' };

/** Byte for byte: fields in this order, known versions by ascending ids. */
export function camundaHeld({
  id,
  taskId,
  version,
  timestamp,
  known = { [id]: version },
}: CamundaHolder): CamundaObject {
  const body = {
    taskId,
    timestamp,
    nodeInstance: { id, version },
    knownVersionMappings: { mappingsByNodeId: known },
  };
  const metadata = { taskid: taskId, version: String(version), acquirable: 'true' };
  return { key: `${id}.json`, body: JSON.stringify(body), metadata, ...JSON_TYPE };
}

export function camundaFree(id: number): CamundaObject {
  return { key: `${id}.json`, body: '', metadata: {}, ...JSON_TYPE };
}

export function camundaReleased(id: number, version: number, acquirable = true): CamundaObject {
  return {
    key: `${id}.json`,
    body: '',
    metadata: { taskid: '', version: String(version), acquirable: String(acquirable) },
    ...JSON_TYPE,
  };
}

export function camundaRestore(restoreId: string, restoredNodes: readonly number[]): CamundaObject {
  return {
    key: `restore/${restoreId}`,
    body: JSON.stringify({ restoreId, restoredNodes }),
    metadata: {},
    ...JSON_TYPE,
  };
}

export const CAMUNDA_MARKER: CamundaObject = {
  ...{ key: 'node-ids-initialized', body: '', metadata: {}, contentType: 'application/octet-stream' },
};
