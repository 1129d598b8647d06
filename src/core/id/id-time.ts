import { NodeLeaseError } from '../base/errors.js';

/**
 * The time that a generator puts into its ids, and its bounds. Uniqueness depends on the bounds alone: every
 * other generator with the node's number stays outside them.
 */
export interface IdTime {
  /** Now, in milliseconds since the Unix epoch. It may step either way: ids never go back. */
  now(): number;
  /** Ids carry times after this, in milliseconds since the Unix epoch. */
  readonly after: number;
  /** Ids carry times before this, in milliseconds since the Unix epoch. It may grow, and never shrinks. */
  before(): number;
  /** Records in advance that ids may carry times up to and including this millisecond. */
  stamp?(untilMs: number): void;
  /** @throws when no ids may be made any more */
  check(): void;
  /** Aborts when no ids may be made any more; undefined if there is no such signal. */
  readonly signal?: AbortSignal | undefined;
}

/**
 * No id is available now: all ids up to this moment have been issued. This ends by itself; `nextAsync()`
 * waits for it.
 */
export class IdsExhaustedError extends NodeLeaseError {
  readonly code = 'IDS_EXHAUSTED';

  constructor(
    /** When to try again, in milliseconds from now; an estimate if it depends on the renewal of a lease. */
    readonly waitMs: number,
    /** Number of ids that `fill` had written by then. They are valid. */
    readonly filled: number,
    /** What is used up, as the rest of the sentence "no id for now: …". */
    readonly detail: string,
  ) {
    super(`no id for now: ${detail}; ask again in ${waitMs} ms`);
  }
}
