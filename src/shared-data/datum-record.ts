import { type Address, KINDS, type Kind, type Lifespan } from './layout.js';
import { type Scalar, scalarOf } from './scalar-codec.js';

/** What a datum's own znode says of it. */
export interface DatumRecord {
  readonly address: Address;
  readonly kind: Kind;
  readonly lifespan: Lifespan;
}

/** The document of a datum's own znode, to the byte; a scalar's type and value stand beside the record. */
export function encodeRecord({ address: { name, scope }, kind, lifespan }: DatumRecord, scalar?: Scalar): string {
  return JSON.stringify({ address: { name, scope }, kind, lifespan, ...(scalar && { type: scalar.type, value: scalar.value }) });
}

/** Undefined where the data is no record. */
export function decodeRecord(data: Buffer): (DatumRecord & { readonly scalar: Scalar | undefined }) | undefined {
  const json = parseObject(data);
  const address = json?.address as Partial<Record<string, unknown>> | null | undefined;
  const { name, scope } = address ?? {};
  const kind = KINDS.find((each) => each === json?.kind);
  const lifespan = (['persistent', 'ephemeral'] as const).find((each) => each === json?.lifespan);
  if (typeof name !== 'string' || typeof scope !== 'string' || kind === undefined || lifespan === undefined) return undefined;
  return { address: { name, scope }, kind, lifespan, scalar: scalarOf(json) };
}

/** The JSON object in the data; undefined for anything else. */
export function parseObject(data: Buffer): Partial<Record<string, unknown>> | undefined {
  try {
    const json: unknown = JSON.parse(data.toString('utf8'));
    return typeof json === 'object' && json !== null && !Array.isArray(json) ? json : undefined;
  } catch {
    return undefined;
  }
}
