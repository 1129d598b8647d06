import { NodeLeaseError } from '../base/errors.js';

/**
 * The time that a generator puts into its ids, and its bounds. Uniqueness rests on the bounds alone: any
 * other generator with the node's number stays outside them.
 */
export interface IdTime {
  /** Now, in milliseconds since the Unix epoch. It may step either way: ids never go back. */
  now(): number;
  /** Ids are stamped later than this, in milliseconds since the Unix epoch. */
  readonly after: number;
  /**
   * Ids are stamped earlier than this, in milliseconds since the Unix epoch. It may grow, and never shrinks.
   */
  before(): number;
  /** Takes note, before it happens, that ids may be stamped up to and including this millisecond. */
  stamp?(untilMs: number): void;
  /** @throws when no ids may be made any more */
  check(): void;
  /** Aborts when no ids may be made any more; undefined where no signal tells that. */
  readonly signal?: AbortSignal | undefined;
}

/**
 * There is no id for now: all that may be issued up to this moment have been. It passes by itself;
 * `nextAsync()` waits for it.
 */
export class IdsExhaustedError extends NodeLeaseError {
  readonly code = 'IDS_EXHAUSTED';

  constructor(
    /** After how many milliseconds to ask again; an estimate where it depends on the renewal of a lease. */
    readonly waitMs: number,
    /** How many ids `fill` had written by then: they are good. */
    readonly filled: number,
    /** What is used up, as the rest of the sentence "no id for now: …". */
    readonly detail: string,
  ) {
    super(`no id for now: ${detail}; ask again in ${waitMs} ms`);
  }
}
