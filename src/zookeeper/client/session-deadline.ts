// Shares of the session's time-out.
/** The longest that the leader may be behind in hearing of a session: half a tick. */
const RELAY_SHARE = 1 / 4;
/** Kept in hand for clocks and schedulers. */
const RESERVE_SHARE = 1 / 12;
/** The most that one answer is worth. */
const MAX_SHARE = 1 / 2;
/** How long a session has to last for certain to be begun with, and the pause between heartbeats until then. */
const FRESH_SHARE = 1 / 4;
const BEAT_SHARE = 1 / 12;

/**
 * Until when the servers cannot have ended a session, by the writes that they answered. That is half a
 * time-out after the sending of the last write if there is one every sixth of it, and a third if the session
 * was idle. The arithmetic, and its limits: docs/design/allocation.md, "One holder". No input, no output:
 * times are those of the monotonic clock, in milliseconds.
 */
export class SessionDeadline {
  /** When the last answered write was sent. */
  sentAt = Number.NEGATIVE_INFINITY;
  /**
   * The servers end the session after this time of the monotonic clock; minus infinity before any answer.
   * Only {@link limit} sets it back.
   */
  until = Number.NEGATIVE_INFINITY;

  /** The leader has heard of the session at this time or later. */
  #heardAt = Number.NEGATIVE_INFINITY;

  /**
   * @param timeoutMs the session's time-out, the least one that the servers ever granted to it, in
   * milliseconds
   * @param heardBy of the session's client
   */
  constructor(
    public timeoutMs: number,
    private readonly heardBy: (at: number) => number,
  ) {}

  /**
   * Takes note of an answered write. One after the other: each was sent after the one before was answered.
   */
  answered(sentAt: number): void {
    const { timeoutMs } = this;
    this.#heardAt = this.heardBy(sentAt - timeoutMs * RELAY_SHARE);
    this.sentAt = sentAt;
    this.until = Math.max(this.until, this.#end);
  }

  /**
   * Another server has granted another time-out to the same session: a shorter one counts from now on, a
   * longer one is not made use of.
   */
  limit(timeoutMs: number): void {
    if (timeoutMs >= this.timeoutMs) return;
    this.timeoutMs = timeoutMs;
    // The leader itself has heard of the connection to that server.
    this.#heardAt = Math.max(this.#heardAt, this.heardBy(Number.NEGATIVE_INFINITY));
    this.until = Math.min(this.until, this.#end);
  }

  /** Whether the session lasts long enough from now on to begin with what takes it. */
  isFresh(now: number): boolean {
    return this.until >= now + this.timeoutMs * FRESH_SHARE;
  }

  /** The pause between heartbeats until it is fresh, in milliseconds. */
  get beatMs(): number {
    return this.timeoutMs * BEAT_SHARE;
  }

  get #end() {
    return Math.min(
      this.sentAt + this.timeoutMs * MAX_SHARE,
      this.#heardAt + this.timeoutMs * (1 - RESERVE_SHARE),
    );
  }
}
