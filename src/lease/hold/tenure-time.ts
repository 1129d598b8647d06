import type { Clock } from '../../base/clock.js';
import type { WidthListener } from './tenure-width.js';

/**
 * The part of store time that belongs to one tenure alone, for stamps of unique ids: no other tenure of the same node id stamps
 * within these bounds, whatever the hosts' clocks say, so no id is made twice (docs/design/protocol.md, "Unique ids").
 */
export interface TenureTime {
  /** Only to wait with. */
  readonly clock: Pick<Clock, 'sleep'>;

  /** Aborts when the tenure ends in either way. What is stamped within the bounds stays unique all the same. */
  readonly signal: AbortSignal;

  /**
   * Makes sure that ids may be made: the width is what the cluster said *after* this node id was acquired, and the bounds hold. Later calls
   * cost nothing.
   *
   * @throws {StoreError} or {ZooKeeperError} when it cannot be learned for as long as the lease lasts
   * @throws what {@link check} throws
   * @throws `signal.reason`
   */
  prepare(signal?: AbortSignal): Promise<void>;

  /**
   * How many bits a node id takes in a unique id, 8 … 16: narrower ones may collide with those of other nodes. It grows, and then the
   * listeners are told. Certain only once {@link prepare} has resolved.
   */
  readonly idWidth: number;

  /**
   * Calls `listener` with every wider width, until the returned function is called. Only when it has returned, or what it returned has
   * resolved, others are told that this node uses the width: from then on no narrower id may be made, and those that were are stamped no
   * later than {@link stamp} has been told. Must neither throw nor reject.
   */
  onWidth(listener: WidthListener): () => void;

  /** The lower bound of store time, in milliseconds since the Unix epoch; this host's wall clock takes no part. It may step either way. */
  now(): number;

  /** Stamps are later than this, in milliseconds since the Unix epoch. Certain only once {@link prepare} has resolved. */
  readonly after: number;

  /** Stamps are earlier than this: the `timestamp` of the last write that is known to be applied. It may grow, and never shrinks. */
  before(): number;

  /**
   * Takes note, before it happens, that ids may be stamped up to and including this millisecond: when the lease is released, the next
   * tenure is told.
   */
  stamp(untilMs: number): void;

  /**
   * @throws {LeaseLostError} when the lease is lost, or found to be past its deadline
   * @throws {LeaseReleasedError} when it was released
   */
  check(): void;
}
