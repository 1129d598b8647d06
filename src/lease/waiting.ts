import type { BarrenLook, Patience, WaitingOptions } from './barren-look.js';
import { TurnTaking } from './turn-taking.js';
import { Watching } from './watching.js';

/**
 * Waits, between two looks at a store on which nothing is free, until another one is worth its requests. Where the store tells of changes, and
 * where many wait, that is less than one request per lease duration. One use each; to be ended.
 */
export class Waiting {
  readonly #patience: Patience;

  constructor(private readonly options: WaitingOptions) {
    this.#patience = options.session.store.changed === undefined ? new TurnTaking(options) : new Watching(options);
  }

  /**
   * Resolves to `look` when it is time to look again, to `too-late` when there is no time left for that.
   *
   * @throws `signal.reason`
   */
  async next(look: BarrenLook): Promise<'look' | 'too-late'> {
    const { clock, signal, until } = this.options;
    signal?.throwIfAborted();
    if (clock.monotonic() >= until) return 'too-late';
    await this.#patience.pass(look);
    return 'look';
  }

  /** Lets go of everything. Idempotent. */
  end(): void {
    this.#patience.end();
  }
}
