import type { Clock } from '../../base/clock.js';

/**
 * Receives a wider width. The width is published after the listener has returned, or after its promise has
 * resolved. It must neither throw nor reject.
 */
export type WidthListener = (idWidth: number) => void | Promise<void>;

/**
 * The id time window of a tenure: the part of store time that its unique ids carry. No other tenure of the
 * same node id has ids within these bounds, whatever the hosts' clocks say, so no id is made twice
 * (docs/design/protocol.md, "Unique ids"). Times are store time, in milliseconds since the Unix epoch; this
 * host's wall clock is not used.
 */
export interface TenureTime {
  /** Used only to wait. */
  readonly clock: Pick<Clock, 'sleep'>;

  /** Aborts when the tenure ends in either way. Ids within the bounds stay unique even then. */
  readonly signal: AbortSignal;

  /**
   * Ensures that ids may be made: the width was read *after* this node id was acquired, and the bounds hold.
   * Later calls cost nothing.
   *
   * @throws {StoreError} or {ZooKeeperError} when the width cannot be read while the lease is held
   * @throws what {@link check} throws
   * @throws `signal.reason`
   */
  prepare(signal?: AbortSignal): Promise<void>;

  /**
   * Bits of a node id in a unique id, 8 … 16: with fewer bits, ids may equal those of other nodes. It may
   * grow. Certain after {@link prepare}.
   */
  readonly idWidth: number;

  /**
   * Calls `listener` with every wider width, until the returned function is called. Once the listener is
   * done, no narrower id may be made, and {@link stamp} must have received the last timestamp of narrower
   * ids.
   */
  onWidth(listener: WidthListener): () => void;

  /** The lower bound of store time now. It may step either way. */
  now(): number;

  /** Ids carry times after this. Certain after {@link prepare}. */
  readonly after: number;

  /**
   * Ids carry times before this: the `timestamp` of the last write that is known to be applied. It never
   * shrinks.
   */
  before(): number;

  /**
   * Records in advance that ids may carry times up to and including this one. A release passes it to the next
   * tenure.
   */
  stamp(untilMs: number): void;

  /**
   * @throws {LeaseLostError} when the lease is lost, or found to be past its deadline
   * @throws {LeaseReleasedError} when it was released
   */
  check(): void;
}

/**
 * The width of a node id in the unique ids of one tenure. All listeners must use a wider width before it is
 * published.
 */
export class TenureWidth {
  /** The width that all listeners use: no narrower ids are made any more. */
  adopted: number;
  readonly #listeners = new Set<WidthListener>();

  /**
   * @param value the width of new ids, at first the published one
   * @param onAdopted called with every wider width once this tenure makes no narrower ids
   */
  constructor(
    public value: number,
    private readonly onAdopted: (idWidth: number) => void,
  ) {
    this.adopted = value;
  }

  /** Calls `listener` with every wider width, until the returned function is called. */
  onWidth(listener: WidthListener): () => void {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  }

  /** Widens new ids to this width, unless they are as wide already. */
  widen(idWidth: number): void {
    if (idWidth <= this.value) return;
    this.value = idWidth;
    const slow = [...this.#listeners]
      .map((listener) => listener(idWidth))
      .filter((adoption) => adoption !== undefined);
    if (slow.length === 0) this.#adopt(idWidth);
    // A listener that never finishes keeps the others waiting. That is necessary: it may still make narrow
    // ids.
    else void Promise.all(slow).then(() => this.#adopt(idWidth));
  }

  #adopt(idWidth: number): void {
    if (idWidth <= this.adopted) return;
    this.adopted = idWidth;
    this.onAdopted(idWidth);
  }
}
