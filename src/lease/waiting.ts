import type { BarrenLook, Patience, WaitingOptions } from './barren-look.js';
import { TurnTaking } from './turn-taking.js';
import { Watching } from './watching.js';

/**
 * Waits, between two looks at a store on which nothing is free, until another one is worth its requests. Where the store tells of changes, and
 * where many wait, that is less than one request per lease duration (for each of them; on a very large cluster two to four). One use each; to
 * be ended.
 */
export class Waiting {
  readonly #patience: Patience;

  constructor(private readonly options: WaitingOptions) {
    this.#patience = options.session.store.changed === undefined ? new TurnTaking(options) : new Watching(options);
  }

  /**
   * Resolves when it is time to look again.
   *
   * @returns at how many parts of the listing to look, or `too-late` when there is no time left for that
   * @throws `signal.reason`
   */
  async next(look: BarrenLook): Promise<number | 'too-late'> {
    const { clock, signal, until } = this.options;
    signal?.throwIfAborted();
    if (clock.monotonic() >= until) return 'too-late';
    return this.#patience.pass(look);
  }

  /** Lets go of everything. Idempotent. */
  end(): void {
    this.#patience.end();
  }
}
