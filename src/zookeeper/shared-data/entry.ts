import { isIP } from 'node:net';
import { objectIn } from '../../core/base/fields.js';
import type { Znode } from '../client/zookeeper.js';
import type { Kind, Lifespan, Scalar } from './data-report.js';
import { type Address, isIndex, KINDS } from './layout.js';
import { fromScalar, type SharedValue, scalarId, scalarOf } from './scalar-codec.js';

/** One element as it was seen last. */
export class Entry<K = SharedValue, V = SharedValue> {
  /**
   * Equal for what may be in a collection only once: the value of a set, the key of a map, the place in a
   * list.
   */
  readonly id: string;
  /** Another one after every write: for conditional writes. Opaque. */
  readonly version: string;
  /** The session that an ephemeral entry goes with, 16 hex digits; undefined for a persistent one. */
  readonly owner: string | undefined;
  /** @internal For the order of two znodes with one element. */
  readonly createdZxid: bigint;

  /**
   * @param name the znode's name
   * @param keyScalar a map's key
   */
  constructor(
    readonly name: string,
    readonly kind: Kind,
    readonly keyScalar: Scalar | undefined,
    readonly scalar: Scalar,
    { stat }: Pick<Znode, 'stat'>,
  ) {
    this.id = kind === 'set' ? scalarId(scalar) : keyScalar ? scalarId(keyScalar) : name;
    this.version = versionOf(stat);
    this.owner = stat.owner;
    this.createdZxid = stat.createdZxid;
  }

  /** A map's key; of another kind undefined. */
  get key(): K {
    return (this.keyScalar && fromScalar(this.keyScalar)) as K;
  }

  /** What it says; a text with its type where JavaScript has nothing that could hold it. */
  get value(): V {
    return fromScalar(this.scalar) as V;
  }
}

/** A znode that has been made again at the same path has another version, too. */
export const versionOf = ({ createdZxid, version }: Znode['stat']) => `${createdZxid}.${version}`;

/** Undefined where the data is no element of a collection of that kind. */
export function decodeEntry(kind: Kind, name: string, znode: Znode): Entry | undefined {
  if (kind === 'scalar') {
    const scalar = decodeRecord(znode.data)?.scalar ?? bareScalar(znode.data);
    return scalar && new Entry(name, kind, undefined, scalar, znode);
  }
  if (kind === 'list' && !isIndex(name)) return undefined;
  const json = objectIn(znode.data);
  const key = kind === 'map' ? scalarOf(json?.key) : undefined;
  const scalar = scalarOf(kind === 'map' ? json?.value : json);
  if (scalar === undefined || (kind === 'map' && key === undefined)) return undefined;
  return new Entry(name, kind, key, scalar, znode);
}

/** What a datum's own znode says of it. */
export interface DatumRecord {
  readonly address: Address;
  readonly kind: Kind;
  readonly lifespan: Lifespan;
}

/** The document of a datum's own znode, to the byte; a scalar's type and value are next to the record. */
export function encodeRecord(
  { address: { name, scope }, kind, lifespan }: DatumRecord,
  scalar?: Scalar,
): string {
  return JSON.stringify({ address: { name, scope }, kind, lifespan, ...scalar });
}

/** Undefined where the data is no record. */
export function decodeRecord(
  data: Buffer,
): (DatumRecord & { readonly scalar: Scalar | undefined }) | undefined {
  const json = objectIn(data);
  const { name, scope }: Partial<Record<string, unknown>> = Object(json?.address);
  const kind = KINDS.find((each) => each === json?.kind);
  const lifespan = (['persistent', 'ephemeral'] as const).find((each) => each === json?.lifespan);
  if (typeof name !== 'string' || typeof scope !== 'string' || kind === undefined || lifespan === undefined)
    return undefined;
  return { address: { name, scope }, kind, lifespan, scalar: scalarOf(json) };
}

/** The scalar of another implementation: its type and value without a record. Undefined for anything else. */
export function bareScalar(data: Buffer): Scalar | undefined {
  const json = objectIn(data);
  return json && ['address', 'kind', 'lifespan'].some((field) => field in json) ? undefined : scalarOf(json);
}

/** Whether another implementation says nothing there: Curator's default is the address of its host. */
export const isBlank = (data: Buffer) => data.length === 0 || isIP(data.toString('latin1')) !== 0;
