import type { Clock, RandomSource } from '../../base/clock.js';

/** Number of sequential requests in a probe: its length in request times. */
const PROBE_REQUESTS = 66;
/**
 * How long to wait for another task's probe: three times the length of a probe here, within these bounds.
 * Milliseconds.
 */
const PROBE_WAIT = { probes: 3, min: 3_000, max: 20_000 } as const;
/**
 * Shortest pause between two reads, in request times, and the longest one with quick requests, in
 * milliseconds.
 */
const LOOK_REQUESTS = 8;
const MAX_PAUSE_MS = 5_000;

interface ProbeWaitOptions {
  readonly clock: Clock;
  readonly random: RandomSource;
  /** The current time of a request, in milliseconds: a slow store is slow for the probing task, too. */
  readonly requestMs: () => number;
  /** Whether many tasks have started at once: their waits then end at different times. */
  readonly raced: boolean;
  /** When to give up, on the monotonic clock. Even a task that does not wait for an id waits for a probe. */
  readonly until: number;
}

/**
 * Waits for the record of another task's probe. It reads the record when the probe should be over, then after
 * growing pauses. At the end of its wait the task may take the probe over. Tasks that see a takeover wait
 * again, for longer. So one task at a time probes.
 */
export class ProbeWait {
  readonly #endAt: number;
  #since: number;
  /** The factor by which it waits longer than usual. */
  #times: number;
  #pauseMs: number;
  #takenOver: number | undefined;

  constructor(private readonly options: ProbeWaitOptions) {
    const { clock, random, raced, until } = options;
    this.#since = clock.monotonic();
    this.#endAt = Math.max(until, this.#since + PROBE_WAIT.min);
    this.#times = raced ? 1 + random.next() / 2 : 1;
    this.#pauseMs = Math.min(this.#probeMs, PROBE_WAIT.min);
  }

  /** Whether there is no time left to wait. */
  get isOver(): boolean {
    return this.options.clock.monotonic() >= this.#endAt;
  }

  /** Sleeps until the next read. */
  async pause(signal?: AbortSignal): Promise<void> {
    const { clock, random } = this.options;
    const now = clock.monotonic();
    const pauseMs = Math.min(this.#pauseMs, Math.max(0, this.#takeOverAt - now));
    await clock.sleep(Math.min(pauseMs * (1 + random.next() / 8), Math.max(0, this.#endAt - now)), signal);
  }

  /**
   * Notes that the record has not come yet.
   *
   * @param takenOver how often the probe has been taken over
   * @returns whether to take it over now
   */
  looked(takenOver = 0): boolean {
    const isNew = this.#takenOver !== undefined && this.#takenOver !== takenOver;
    // The first pause was as long as a whole probe.
    const longerMs = this.#takenOver === undefined ? 0 : Math.min(2 * this.#pauseMs, MAX_PAUSE_MS);
    this.#pauseMs = Math.max(longerMs, LOOK_REQUESTS * this.options.requestMs());
    this.#takenOver = takenOver;
    const isEnough = !isNew && this.options.clock.monotonic() >= this.#takeOverAt;
    if (isNew) this.#times = 1.5;
    if (isNew || isEnough) this.#since = this.options.clock.monotonic();
    return isEnough;
  }

  get #takeOverAt(): number {
    const { probes, min, max } = PROBE_WAIT;
    return this.#since + this.#times * Math.min(Math.max(probes * this.#probeMs, min), max);
  }

  get #probeMs(): number {
    return PROBE_REQUESTS * this.options.requestMs();
  }
}
