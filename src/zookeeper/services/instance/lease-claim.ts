/** What a payload says of a lease: in itself, or as texts in the metadata of Spring's. */
export interface LeaseClaim {
  readonly nodeId: number;
  readonly version: number | null;
}

/** The node id that a payload names; null if it names none. */
export function claimIn(payload: unknown): LeaseClaim | null {
  const fields = Object(payload) as Partial<Record<string, unknown>>;
  const metadata = Object(fields.metadata) as Partial<Record<string, unknown>>;
  const nodeId = countOf(fields.nodeId ?? metadata.nodeId);
  return nodeId === null ? null : { nodeId, version: countOf(fields.version ?? metadata.version) };
}

function countOf(value: unknown): number | null {
  const count = typeof value === 'string' && /^\d{1,16}$/.test(value) ? Number(value) : value;
  return Number.isSafeInteger(count) && (count as number) >= 0 ? (count as number) : null;
}
