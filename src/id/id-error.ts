import { NodeLeaseError } from '../base/errors.js';

/**
 * There is no id for now: all that may be issued up to this moment have been. It passes by itself; `nextAsync()` waits for it.
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
