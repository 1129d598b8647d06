import type { ObjectChange } from '../store/lease-store.js';
import { type BarrenLook, longPauseMs, type Patience, type WaitingOptions } from './barren-look.js';
import { CLUSTER_KEY } from './cluster-config.js';
import { nodeIdOf } from './lease-state.js';

/** How long those who are told of one and the same thing wait by chance, once they have come too late, in milliseconds. */
const SPREAD_MS = { first: 200, most: 400 };
/** The same for an expiry, which all of them foresee: a part of the duration, and at most so many milliseconds. */
const EXPIRY_SPREAD = { part: 1 / 50, mostMs: 300 };
/** The least time between two looks, and from one until the next expiry is looked for, in milliseconds. */
const LEAST_PAUSE_MS = { news: 100, expiry: 200 };
/** How many looks for nothing a store may cause that does not say what has changed, and what is forgiven with each ordinary look. */
const CREDIT = { most: 3, regained: 0.05 };

/** Why and when to look at the store again. */
interface Plan {
  /** On the monotonic clock. */
  readonly at: number;
  /** An id may have been given up; something or other has changed; a lease can be found expired; it is time. */
  readonly why: 'free' | 'hint' | 'expiry' | 'time';
}

/** Why the last look was made, and what was known before it. */
interface Occasion {
  readonly why: Plan['why'];
  readonly losses: number;
  readonly free: readonly string[];
}

/** What is known since a look, and what was drawn by lot for the time until the next one. */
interface Round {
  readonly look: BarrenLook;
  /** When each lease that seemed held can be found expired unless it is renewed, on the monotonic clock. */
  readonly expiries: ReadonlyMap<string, number>;
  readonly chance: number;
  /** When to look at the latest. */
  readonly restAt: number;
}

/**
 * Waits with an eye on a store that tells of changes.
 *
 * Who is told of each renewal knows without asking until when every lease is good, and who is told of a new holder need not look for that id
 * any more. So nothing is asked but for an id that has been given up or a lease that nobody has renewed, and what one of those who wait has
 * taken the others leave alone. Everybody looks once in a while all the same: changes are hints, and may not be told.
 *
 * Where a store does not say what has changed, its hints, and the expiries foreseen, are followed only as long as they turn out true.
 */
export class Watching implements Patience {
  /** Ends the watch, while there is one. */
  #ending: AbortController | undefined;
  /** Interrupts the sleep, while there is one. */
  #wake: (() => void) | undefined;
  /** What may be free, and which leases were written, and when, on the monotonic clock: as was told since the last look began. */
  readonly #free = new Set<string>();
  readonly #heldSince = new Map<string, number>();
  /** When the first news came that is still worth a look, on the monotonic clock. */
  #newsAt = 0;
  /** The store has said what has changed, at least once. */
  #heeds = false;
  /** Since the last look it has said that something has, and not what. */
  #hinted = false;
  #credit = CREDIT.most;
  #spreadMs = 0;
  #last: Occasion | undefined;
  #size = Number.POSITIVE_INFINITY;

  constructor(private readonly options: WaitingOptions) {}

  async pass(look: BarrenLook): Promise<number> {
    this.#size = look.config.size;
    this.#watch();
    // The first time, look once more with an eye on the store: what changed before the watch began would go unnoticed.
    const why = this.#last === undefined ? 'time' : await this.#waitFrom(look, this.#last);
    this.#last = { why, losses: look.losses, free: [...this.#free] };
    this.#free.clear();
    this.#heldSince.clear();
    this.#hinted = false;
    return Number.POSITIVE_INFINITY;
  }

  end(): void {
    this.#ending?.abort(new Error('no longer of interest'));
    this.#ending = undefined;
  }

  async #waitFrom(look: BarrenLook, last: Occasion): Promise<Plan['why']> {
    const { clock, random, emit, signal, until } = this.options;
    this.#judge(last, look.losses > last.losses);
    const restAt = look.lookedAt + longPauseMs(look.config, random);
    const round = { look, expiries: this.#expiries(look), chance: random.next(), restAt };
    for (let told = false; ; told = true) {
      signal?.throwIfAborted();
      const plan = this.#plan(round);
      const leftMs = Math.min(plan.at, until) - clock.monotonic();
      if (!told) emit({ type: 'waiting', sleepMs: Math.max(0, leftMs) });
      if (leftMs <= 0) return plan.why;
      await this.#sleep(leftMs);
    }
  }

  /** What a look that was made for nothing says about the reason that it was made for. */
  #judge({ why, free }: Occasion, raced: boolean): void {
    if (why === 'time') this.#credit = Math.min(CREDIT.most, this.#credit + CREDIT.regained);
    else if (!raced && (why === 'hint' || !this.#heeds)) this.#credit -= 1;
    // Somebody was faster, so there are others: when not all ask at once, the first one leaves nothing to ask for.
    if (raced || free.some((key) => this.#heldSince.has(key))) {
      this.#spreadMs = Math.min(Math.max(SPREAD_MS.first, this.#spreadMs * 2), SPREAD_MS.most);
    }
  }

  #plan({ look, expiries, chance, restAt }: Round): Plan {
    // Where many come and go there is news all the time.
    const newsAt = Math.max(this.#newsAt + chance * this.#spreadMs, look.lookedAt + LEAST_PAUSE_MS.news);
    if (this.#free.size > 0) return { at: newsAt, why: 'free' };
    if (this.#hinted && this.#credit >= 1) return { at: newsAt, why: 'hint' };
    const needMs = look.config.durationMs + look.config.graceMs;
    let expiryAt = look.laterAt;
    for (const [key, at] of expiries) {
      const since = this.#heldSince.get(key);
      expiryAt = Math.min(expiryAt, since === undefined ? at : Math.max(at, since + needMs + 1));
    }
    expiryAt += chance * Math.min(EXPIRY_SPREAD.mostMs, look.config.durationMs * EXPIRY_SPREAD.part);
    if (expiryAt >= restAt) return { at: restAt, why: 'time' };
    if (expiryAt > look.lookedAt + look.config.durationMs) return { at: expiryAt, why: 'time' };
    if (!this.#heeds && this.#credit < 1) return { at: restAt, why: 'time' };
    return { at: Math.max(expiryAt, look.lookedAt + LEAST_PAUSE_MS.expiry), why: 'expiry' };
  }

  #expiries({ config, listing, lookedAt, expiryAt }: BarrenLook): ReadonlyMap<string, number> {
    const needMs = config.durationMs + config.graceMs;
    const found = new Map<string, number>();
    let earliest = Number.POSITIVE_INFINITY;
    for (const { key, size, age } of listing.objects) {
      const id = nodeIdOf(key);
      if (id === undefined || id >= config.size || size <= this.options.codec.tombstoneMaxBytes || age.max > needMs) continue;
      const at = lookedAt + needMs - age.max + 1;
      earliest = Math.min(earliest, at);
      found.set(key, at);
    }
    // A store that cuts its times tells of an expiry later than that.
    const lagMs = Math.max(0, expiryAt - earliest);
    return lagMs > 0 && found.size > 0 ? new Map([...found].map(([key, at]) => [key, at + lagMs])) : found;
  }

  #watch(): void {
    if (this.#ending !== undefined) return;
    const ending = new AbortController();
    this.#ending = ending;
    const { store } = this.options.session;
    // Also where it throws at once.
    const happened = async () => store.changed?.(ending.signal, (change) => this.#learn(change));
    // A watch that fails is no change: the sleep beside it has an end. It begins anew with the next look, as one that has ended does.
    const over = () => {
      if (this.#ending === ending) this.#ending = undefined;
    };
    const onHint = () => {
      over();
      if (!ending.signal.aborted) this.#news(() => (this.#hinted = true));
    };
    happened().then(onHint, over);
  }

  /** Takes note of a change. Never ends the watch by itself, so that nothing is missed between two of them. */
  #learn({ key, size }: ObjectChange): false {
    this.#heeds = true;
    const id = nodeIdOf(key);
    if (id === undefined ? key !== CLUSTER_KEY : id >= this.#size) return false;
    if (id === undefined || size === undefined || size <= this.options.codec.tombstoneMaxBytes) {
      this.#news(() => this.#free.add(key));
    } else {
      this.#free.delete(key);
      this.#heldSince.set(key, this.options.clock.monotonic());
    }
    return false;
  }

  #news(note: () => void): void {
    if (this.#free.size === 0) this.#newsAt = this.options.clock.monotonic();
    note();
    this.#wake?.();
  }

  /** Sleeps until there is news, `ms` at the longest. */
  async #sleep(ms: number): Promise<void> {
    const { clock, signal } = this.options;
    const woken = new AbortController();
    const onAbort = () => woken.abort(signal?.reason);
    signal?.addEventListener('abort', onAbort, { once: true });
    this.#wake = () => woken.abort();
    try {
      await clock.sleep(ms, woken.signal);
    } catch (error) {
      if (!woken.signal.aborted) throw error;
    } finally {
      this.#wake = undefined;
      signal?.removeEventListener('abort', onAbort);
    }
  }
}
