/** The shared data below one root. */
export interface DataReport {
  readonly zookeeper: string;
  readonly root: string;
  readonly exists: boolean;
  /** In the order of their names. */
  readonly data: readonly DatumReport[];
}

/** One datum with its elements; of a scalar, itself. */
export interface DatumReport extends DatumHead {
  /** How many entries it has, with the ones that `entries` omits. */
  readonly size: number;
  /** Of the datum's znode and of `entries`. */
  readonly bytes: number;
  readonly entries: readonly DataEntry[];
}

/** A znode where data is, or should be. */
export interface DatumHead {
  readonly path: string;
  /**
   * These four are null where they are unknown. Data of other implementations has no name and no scope, except
   * where it was asked for by them.
   */
  readonly name: string | null;
  readonly scope: string | null;
  readonly kind: Kind | null;
  readonly lifespan: Lifespan | null;
  readonly problem: string | null;
}

/**
 * An element of a collection, or a scalar; also a znode that is neither, with its problem. JSON can represent
 * all of it.
 */
export interface DataEntry {
  readonly path: string;
  /** A map's key, and an element of a list its index; null for another kind. */
  readonly key: ShownScalar | null;
  /** Null where the znode holds no element. */
  readonly scalar: ShownScalar | null;
  /**
   * The place in its collision chain, from 0; null for a scalar, a list, and where the name is no hash of it.
   */
  readonly place: number | null;
  /** The session that an ephemeral entry goes with, 16 hex digits; null for a persistent one. */
  readonly owner: string | null;
  /** The node that is announced in this session. */
  readonly node: string | null;
  /** Null where it may not be read. */
  readonly version: string | null;
  readonly bytes: number;
  readonly problem: string | null;
}

/** What shared data can be. */
export type Kind = 'scalar' | 'set' | 'list' | 'map';

/** Ephemeral data goes with the node that contributes it. */
export type Lifespan = 'persistent' | 'ephemeral';

/** A scalar as a znode contains it: `{"type":"Integer","value":"3"}`. The value is always a text. */
export interface Scalar {
  readonly type: string;
  readonly value: string;
}

/** A scalar, or the beginning of a long one. */
export interface ShownScalar extends Scalar {
  /** Whether `value` is only the beginning. @default false */
  readonly isShortened?: true;
}
