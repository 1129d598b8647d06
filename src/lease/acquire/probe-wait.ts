import type { Clock, RandomSource } from '../../base/clock.js';

/** How many requests of a probe are made one after the other: what it takes, in times of one request. */
const PROBE_REQUESTS = 66;
/**
 * How long another task's probe is waited for: three times as long as one takes here, within these bounds.
 * Milliseconds.
 */
const PATIENCE = { probes: 3, min: 3_000, max: 20_000 } as const;
/**
 * The least pause between two looks, in times of one request, and the longest one where requests are quick,
 * in milliseconds.
 */
const LOOK_REQUESTS = 8;
const MAX_PAUSE_MS = 5_000;

export interface ProbeWaitOptions {
  readonly clock: Clock;
  readonly random: RandomSource;
  /**
   * How long a request takes, in milliseconds, as of now: a store that is slow is slow for the probing task
   * as well.
   */
  readonly requestMs: () => number;
  /** Whether many have started at once: their patience ends at different times. */
  readonly raced: boolean;
  /**
   * When to give up, on the monotonic clock. A task that does not want to wait for an id waits for a probe
   * all the same.
   */
  readonly until: number;
}

/**
 * How a task waits for the record of another task's probe. It looks when a probe should be over, then in
 * growing pauses. When its patience ends it may take the probe over. Tasks that see that another one has done
 * so wait anew, for longer: of many, one probes at a time.
 */
export class ProbeWait {
  readonly #endAt: number;
  #since: number;
  /** How many times as long as usual it waits. */
  #times: number;
  #pauseMs: number;
  #takenOver: number | undefined;

  constructor(private readonly options: ProbeWaitOptions) {
    const { clock, random, raced, until } = options;
    this.#since = clock.monotonic();
    this.#endAt = Math.max(until, this.#since + PATIENCE.min);
    this.#times = raced ? 1 + random.next() / 2 : 1;
    this.#pauseMs = Math.min(this.#probeMs, PATIENCE.min);
  }

  /** Whether there is no time left to wait. */
  get isOver(): boolean {
    return this.options.clock.monotonic() >= this.#endAt;
  }

  /** Sleeps until the next look. */
  async pause(signal?: AbortSignal): Promise<void> {
    const { clock, random } = this.options;
    const now = clock.monotonic();
    const pauseMs = Math.min(this.#pauseMs, Math.max(0, this.#patienceEndsAt - now));
    await clock.sleep(Math.min(pauseMs * (1 + random.next() / 8), Math.max(0, this.#endAt - now)), signal);
  }

  /**
   * Takes note of a look at a record that is still to come.
   *
   * @param takenOver how often the probe has been taken over
   * @returns whether to take it over now
   */
  looked(takenOver = 0): boolean {
    const isNew = this.#takenOver !== undefined && this.#takenOver !== takenOver;
    // The first pause was that of a whole probe.
    const longerMs = this.#takenOver === undefined ? 0 : Math.min(2 * this.#pauseMs, MAX_PAUSE_MS);
    this.#pauseMs = Math.max(longerMs, LOOK_REQUESTS * this.options.requestMs());
    this.#takenOver = takenOver;
    const isEnough = !isNew && this.options.clock.monotonic() >= this.#patienceEndsAt;
    if (isNew) this.#times = 1.5;
    if (isNew || isEnough) this.#since = this.options.clock.monotonic();
    return isEnough;
  }

  get #patienceEndsAt(): number {
    const { probes, min, max } = PATIENCE;
    return this.#since + this.#times * Math.min(Math.max(probes * this.#probeMs, min), max);
  }

  get #probeMs(): number {
    return PROBE_REQUESTS * this.options.requestMs();
  }
}
