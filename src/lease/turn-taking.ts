import { type BarrenLook, longPauseMs, type Patience, type WaitingOptions } from './barren-look.js';
import { partsForEach } from './listing-parts.js';
import { WaitingRoom } from './waiting-room.js';

/** The least time between two looks, in milliseconds. */
const LEAST_PAUSE_MS = 200;
/** How many races one has lost who must think that the others are many, before any marks tell. */
const MANY_LOSSES = 2;
/** By what part the pauses of several who wait differ by chance, either way. */
const SPREAD = 0.2;
/** How many times more than needed are marked, so that enough are left when some go. */
const ENOUGH = 2;
/** One look at an object for each so many that may become free is too few: those who look at the wrong parts would leave some of them. */
const LOOKS_EACH = 8;
/** By what part those who wait become fewer only if many ids became free. */
const LEFT = 1 / 8;
/** How long before the end the mark is taken away, in milliseconds: afterwards the store may be closed. */
const LEAVE_EARLY_MS = 2_000;

/**
 * Waits without being told of changes: one who waits alone looks every `pollMs`, and several share the looks, so that together they look as
 * often as one. None waits longer than {@link longPauseMs}: that is when a lease that has expired meanwhile should be found. Where each waits
 * that long and one request does not show everything, they share that as well: each looks at some part, and together they overlook nothing.
 */
export class TurnTaking implements Patience {
  readonly #room: WaitingRoom;
  #waiting = 1;
  /** The fair pause before this one, in milliseconds, and when the sleep for it was to end, on the monotonic clock. */
  #last: { readonly pauseMs: number; readonly until: number } | undefined;
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
    const { pollMs } = session.store;
    const { durationMs } = look.config;
    const waiting = this.#room.count(look.listing);
    const longMs = longPauseMs(look.config, random);
    // Those who lost races before they found nothing may be very many, and none of them has left a mark yet.
    const crowded = this.#last === undefined && look.losses >= MANY_LOSSES;
    const few = waiting / ENOUGH;
    const wanted = few * pollMs < longMs || partsForEach(few, look.parts) > 1;
    if ((this.#room.isMarked || (wanted && !crowded)) && !ending) this.#room.enter(look.listing);
    const fairMs = pollMs * (1 + (waiting - 1) * (1 - SPREAD + 2 * SPREAD * random.next()));
    const many = waiting * pollMs >= durationMs;
    const pauseMs = crowded || many ? longMs : Math.min(fairMs, longMs);
    const inStep = this.#isInStep(pauseMs) || crowded;
    const now = clock.monotonic();
    // Alone, one may look when a lease can be found expired.
    const chanceMs = Math.max(Math.min(look.expiryAt, look.laterAt) - now, LEAST_PAUSE_MS) + random.next() * Math.min(50, durationMs / 100);
    let sleepMs = waiting > 1 || pauseMs > durationMs ? pauseMs : Math.min(chanceMs, pauseMs);
    if (inStep) sleepMs = pollMs + random.next() * Math.max(0, pauseMs - pollMs);
    this.#last = { pauseMs, until: now + sleepMs };
    const parts = many ? this.#parts(look, waiting) : look.parts;
    this.#waiting = waiting;
    return { pauseMs: sleepMs, parts };
  }

  /** All of them where many ids are about to become free, or just have. */
  #parts({ parts, overdue }: BarrenLook, waiting: number): number {
    const each = partsForEach(waiting, parts);
    const looks = (waiting * each) / parts;
    return overdue * LOOKS_EACH > looks || waiting < this.#waiting * (1 - LEFT) ? parts : each;
  }

  /** Whether there is reason to think that others look at the same time, and would ever after: they began together, or were held up together. */
  #isInStep(pauseMs: number): boolean {
    if (this.#last === undefined) return false;
    const { clock, session } = this.options;
    const lateMs = Math.max(0, clock.monotonic() - this.#last.until);
    const heldUp = lateMs > this.#lateMs + 2 * session.store.pollMs;
    this.#lateMs = Math.min(this.#lateMs, lateMs);
    return heldUp || pauseMs >= 2 * this.#last.pauseMs;
  }
}
