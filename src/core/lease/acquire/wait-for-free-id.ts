import { anySignal } from '../../base/abort.js';
import type { ObjectChange } from '../../store/lease-store.js';
import { CLUSTER_KEY } from '../model/cluster-config.js';
import { nativeCodec } from '../model/lease-codec.js';
import { nodeIdOf } from '../model/lease-state.js';
import type { AcquireContext } from './claim.js';

/**
 * Each scan without a change makes the next pause longer by this factor: 1.2, 1.8, 2.7, 4.05 s, then the
 * longest pause.
 */
const GROWTH = 1.5;
/**
 * Longest pause, as a share of the duration. A waiting task sends three requests a duration, and notices a
 * released id within one pause. The pause is shorter than the time from a failed renewal to the expiry. So at
 * least one scan comes in between and predicts the expiry.
 */
const MAX_PAUSE = 1 / 3;
/** Jitter of each pause, in both directions, so that tasks that began together do not scan together. */
const SPREAD = 0.2;
/**
 * Jitter delays the scan for a predicted expiry by up to a tenth of the duration, and up to this, in
 * milliseconds. Most tasks then find the id taken.
 */
const MAX_EXPIRY_JITTER_MS = 1_000;
/**
 * The same for an id whose release the store reported, in milliseconds: up to `first`, twice as much after each such
 * scan in vain, up to `max`. So a task that waits alone is quick, and many scan one after another.
 */
const NEWS_JITTER_MS = { first: 70, max: 400 };
/** Shortest time from one scan to the next, in milliseconds, whatever the store reports. */
const MIN_PAUSE_MS = 200;

/** A scan that found no free id. Times are those of the monotonic clock. */
export interface FruitlessScan {
  readonly durationMs: number;
  readonly scannedAt: number;
  /** Whether it showed all leases. */
  readonly complete: boolean;
  /** When the first of the leases that it showed can be found expired; infinity for none. */
  readonly expiryAt: number;
  /** The key after which a page has to begin to show that lease; undefined where every page shows it. */
  readonly expiryAfter: string | undefined;
}

/** The extent of the next scan. */
export interface ScanPlan {
  /** `one`: a page. `all`: page after page, until there is a candidate to try. */
  readonly pages: 'one' | 'all';
  /** The key after which the page begins. @default that of a random page */
  readonly after?: string | undefined;
}

/**
 * Waits between two scans of a task that found no free id (docs/design/protocol.md, "Acquiring and waiting").
 * The pause grows. It ends early when a lease that was seen can be found expired, or when the store reports a
 * change. The wait writes nothing, and tasks know nothing of each other.
 */
export class WaitForFreeId {
  readonly #watch: ChangeWatch | undefined;
  /** Whether it has waited. Meanwhile the cluster's settings may have changed. */
  hasBegun = false;
  /** The pause after the last scan, before jitter, in milliseconds; 0 before the first. */
  #pauseMs = 0;
  #newsJitterMs = NEWS_JITTER_MS.first;
  #allScannedAt = Number.NEGATIVE_INFINITY;

  constructor(private readonly options: Omit<AcquireContext, 'taskId' | 'retry' | 'shown'>) {
    if (options.session.store.changed !== undefined) this.#watch = new ChangeWatch(options);
  }

  /**
   * Resolves to the next scan when it is due, or at once to `too-late` when no time is left.
   *
   * @throws `signal.reason`
   */
  async next(scan: FruitlessScan): Promise<ScanPlan | 'too-late'> {
    const { session, clock, random, emit, signal, until, waitPollMs = session.pollMs } = this.options;
    signal?.throwIfAborted();
    this.hasBegun = true;
    if (clock.monotonic() >= until) return 'too-late';
    const { durationMs, scannedAt, expiryAfter } = scan;
    if (scan.complete) this.#allScannedAt = scannedAt;
    // The watch does not report changes from before it began. Another scan shows them.
    if (this.#watch?.begin() === 'first') return { pages: 'all' };

    const maxPauseMs = durationMs * MAX_PAUSE;
    this.#pauseMs = Math.min(this.#pauseMs === 0 ? waitPollMs : this.#pauseMs * GROWTH, maxPauseMs);
    const spread = 1 + SPREAD * (2 * random.next() - 1);
    const newsJitterMs = random.next() * this.#newsJitterMs;
    const expiryAt = scan.expiryAt + random.next() * Math.min(MAX_EXPIRY_JITTER_MS, durationMs / 10);
    const allAt = this.#allScannedAt + durationMs;
    const dueAt = () => {
      const pauseMs = this.#watch?.isReliable ? maxPauseMs : this.#pauseMs;
      const newsAt = (this.#watch?.newsAt ?? Number.POSITIVE_INFINITY) + newsJitterMs;
      return Math.max(
        Math.min(scannedAt + pauseMs * spread, expiryAt, allAt, newsAt),
        scannedAt + MIN_PAUSE_MS,
      );
    };
    const leftMs = () => Math.min(dueAt(), until) - clock.monotonic();
    emit({ type: 'waiting', sleepMs: Math.max(0, leftMs()) });
    for (let ms = leftMs(); ms > 0; ms = leftMs()) await this.#sleep(ms);
    // Counts only if this scan is in vain, too.
    if (this.#watch !== undefined && this.#watch.newsAt < Number.POSITIVE_INFINITY)
      this.#newsJitterMs = Math.min(2 * this.#newsJitterMs, NEWS_JITTER_MS.max);
    this.#watch?.forget();

    const now = clock.monotonic();
    // The last scan must show all leases.
    if (now >= allAt || now >= until) return { pages: 'all' };
    return { pages: 'one', after: now >= expiryAt ? expiryAfter : undefined };
  }

  /** Ids change hands: the pauses are short again. */
  restart(): void {
    this.#pauseMs = 0;
  }

  /** Ends the watch. Idempotent. */
  end(): void {
    this.#watch?.end();
  }

  /** Sleeps for `ms`, or until the store reports a change. */
  async #sleep(ms: number): Promise<void> {
    const { clock, signal } = this.options;
    if (this.#watch === undefined) return clock.sleep(ms, signal);
    const news = new AbortController();
    const woken = anySignal(news.signal, signal);
    this.#watch.onNews = () => news.abort();
    try {
      await clock.sleep(ms, woken.signal);
    } catch (error) {
      if (!woken.signal.aborted) throw error;
      signal?.throwIfAborted();
    } finally {
      this.#watch.onNews = () => undefined;
      woken.release();
    }
  }
}

/** Collects the changes that a store reports. They are hints: the wait ends without them, too. */
class ChangeWatch {
  /** Called at each reported change, and when a watch ends. */
  onNews: () => void = () => undefined;
  /**
   * When the store first reported an id that may be free now, on the monotonic clock; infinity if none since
   * the last scan.
   */
  newsAt = Number.POSITIVE_INFINITY;
  readonly #free = new Set<string>();
  #ending: AbortController | undefined;
  #begun = false;
  #failed = false;

  constructor(private readonly options: Pick<AcquireContext, 'session' | 'clock'>) {}

  /**
   * False if the store cannot watch, or did not say what has changed: then the watch does not replace
   * polling.
   */
  get isReliable(): boolean {
    return !this.#failed;
  }

  /** Begins to watch unless a watch is running. Returns 'first' if it has never watched before. */
  begin(): 'first' | 'again' {
    const times = this.#begun ? 'again' : 'first';
    this.#begun = true;
    if (this.#ending !== undefined) return times;
    const ending = new AbortController();
    this.#ending = ending;
    const { store } = this.options.session;
    // A watch ends when it fails, or when the store does not say what has changed. The next scan begins
    // another one.
    const over = () => {
      if (this.#ending !== ending) return;
      this.#ending = undefined;
      this.#failed = true;
      this.onNews();
    };
    const watching = async () => store.changed?.(ending.signal, (change) => this.#note(change));
    watching().then(over, over);
    return times;
  }

  /** Forgets the changes: the scan that begins now shows all of them. */
  forget(): void {
    this.#free.clear();
    this.newsAt = Number.POSITIVE_INFINITY;
    if (this.#ending !== undefined) this.#failed = false;
  }

  end(): void {
    const ending = this.#ending;
    this.#ending = undefined;
    ending?.abort(new Error('the wait has ended'));
  }

  /** Returns false, so that the watch continues: no change is missed between two watches. */
  #note({ key, size }: ObjectChange): false {
    const id = nodeIdOf(key);
    if (id === undefined && key !== CLUSTER_KEY) return false;
    const isHeld = id !== undefined && size !== undefined && size > nativeCodec.tombstoneMaxBytes;
    if (isHeld) this.#free.delete(key);
    else this.#free.add(key);
    if (this.#free.size === 0) this.newsAt = Number.POSITIVE_INFINITY;
    else if (!isHeld) {
      this.newsAt = Math.min(this.newsAt, this.options.clock.monotonic());
      this.onNews();
    }
    return false;
  }
}
