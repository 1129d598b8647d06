import { type BarrenLook, longPauseMs, type Patience, type WaitingOptions } from './barren-look.js';
import { partsForEach } from './listing-parts.js';
import { WaitingRoom } from './waiting-room.js';

/** The least time between two looks, in milliseconds. */
const LEAST_PAUSE_MS = 200;
/** How many races one has lost who must think that the others are many, before any marks tell. */
const MANY_LOSSES = 2;
/** By what part the pauses of several who wait differ by chance, either way. */
const SPREAD = 0.2;
/** How much longer the pause gets with each further one who waits, in parts of `pollMs`: they look a little less often together than one alone. */
const SHARE = 1.5;
/** How many times more than needed are marked, so that enough are left when some go. */
const ENOUGH = 2;
/** One look at an object for each so many that may become free is too few: those who look at the wrong parts would leave some of them. */
const LOOKS_EACH = 8;
/** By what part those who wait become fewer only if many ids became free. */
const LEFT = 1 / 8;
/** How long before the end the mark is taken away, in milliseconds: afterwards the store may be closed. */
const LEAVE_EARLY_MS = 2_000;

/** A pause between two looks. */
interface Pause {
  readonly waiting: number;
  /** The fair one, in milliseconds. */
  readonly pauseMs: number;
  /** Whether so many wait that it is as long as it may be. */
  readonly many: boolean;
  /** When the sleep for it was to end, on the monotonic clock. */
  readonly until: number;
}

/**
 * Waits without being told of changes: one who waits alone looks every `pollMs`, and several share the looks, so that together they look about
 * as often as one. None waits longer than {@link longPauseMs}: that is when a lease that has expired meanwhile should be found. Where each waits
 * that long and one request does not show everything, they share that as well: each looks at some part, and together they hardly ever overlook any.
 */
export class TurnTaking implements Patience {
  readonly #room: WaitingRoom;
  #last: Pause | undefined;
  /** How late a look comes that nothing has held up, in milliseconds: it takes its time. The least so far. */
  #lateMs = Number.POSITIVE_INFINITY;

  constructor(private readonly options: WaitingOptions) {
    this.#room = new WaitingRoom(options);
  }

  async pass(look: BarrenLook): Promise<number> {
    const { clock, emit, signal, until } = this.options;
    const ending = until - clock.monotonic() <= LEAVE_EARLY_MS;
    if (ending) this.#room.leave();
    const { pauseMs, parts } = this.#draw(look, ending);
    const leftMs = until - clock.monotonic();
    const sleepMs = Math.max(0, Math.min(pauseMs, leftMs));
    emit({ type: 'waiting', sleepMs });
    await clock.sleep(sleepMs, signal);
    // It may be the last one.
    return pauseMs < leftMs ? parts : Number.POSITIVE_INFINITY;
  }

  end(): void {
    this.#room.leave();
  }

  /**
   * How long to wait, and at how many parts of the listing to look then.
   *
   * @param ending whether there is too little time left for a mark
   */
  #draw(look: BarrenLook, ending: boolean): { pauseMs: number; parts: number } {
    const { session, clock, random } = this.options;
    const { durationMs } = look.config;
    const { pollMs } = session.store;
    const waiting = this.#room.count(look.listing);
    // Those who lost races before they found nothing may be very many, and none of them has left a mark yet.
    const crowded = this.#last === undefined && look.losses >= MANY_LOSSES;
    if ((this.#room.isMarked || (!crowded && this.#needsMarks(look, waiting))) && !ending) this.#room.enter(look.listing);
    const longMs = longPauseMs(look.config, random);
    const many = fairMs(pollMs, waiting) >= durationMs;
    const pauseMs = crowded || many ? longMs : Math.min(fairMs(pollMs, waiting, 1 - SPREAD + 2 * SPREAD * random.next()), longMs);
    const chanceMs = Math.max(Math.min(look.expiryAt, look.laterAt) - clock.monotonic(), LEAST_PAUSE_MS);
    // Alone, one may look when a lease can be found expired.
    const alone = waiting === 1 && pauseMs <= durationMs;
    let sleepMs = alone ? Math.min(pauseMs, chanceMs + random.next() * Math.min(50, durationMs / 100)) : pauseMs;
    if (crowded || this.#isInStep({ pauseMs, many })) sleepMs = pollMs + random.next() * Math.max(0, pauseMs - pollMs);
    const each = many ? partsForEach(waiting, look.parts) : look.parts;
    // Where many are about to become free, who comes last would find one that has been free for long.
    const rush = look.overdue * LOOKS_EACH > (waiting * each) / look.parts;
    if (rush) sleepMs = Math.min(sleepMs, chanceMs + (random.next() * durationMs) / 2);
    // What others have found need not be all that there is, where this was a part.
    const left = look.listing.complete === false && waiting < (this.#last?.waiting ?? 1) * (1 - LEFT);
    if (left) sleepMs = Math.min(sleepMs, LEAST_PAUSE_MS + random.next() * Math.min(pollMs, durationMs / 8));
    const parts = rush || left ? look.parts : each;
    this.#last = { waiting, pauseMs, many, until: clock.monotonic() + sleepMs };
    return { pauseMs: sleepMs, parts };
  }

  /** Whether there are too few marks for a pause that is long enough, or for a part that is small enough. */
  #needsMarks({ config, parts }: BarrenLook, waiting: number): boolean {
    const few = waiting / ENOUGH;
    return few * this.options.session.store.pollMs < config.durationMs || partsForEach(few, parts) > 1;
  }

  /** Whether there is reason to think that others look at the same time, and would ever after: they began together, or were held up together. */
  #isInStep({ pauseMs, many }: Pick<Pause, 'pauseMs' | 'many'>): boolean {
    if (this.#last === undefined) return false;
    const { clock, session } = this.options;
    const lateMs = Math.max(0, clock.monotonic() - this.#last.until);
    const heldUp = lateMs > this.#lateMs + 2 * session.store.pollMs;
    this.#lateMs = Math.min(this.#lateMs, lateMs);
    return heldUp || pauseMs >= 2 * this.#last.pauseMs || (many && !this.#last.many);
  }
}

/** How long each pauses where so many share the looks, in milliseconds; `chance` is 1 in the mean. */
function fairMs(pollMs: number, waiting: number, chance = 1): number {
  return pollMs * (1 + (waiting - 1) * SHARE * chance);
}
