/** Clocks of one machine, in milliseconds. */
export interface MachineClocks {
  /** The wall clock. */
  wall(): number;
  /** Stops while the machine is suspended. */
  running(): number;
  /**
   * Continues while it is suspended; counts from the same moment as `running`, in coarse steps, and is slow
   * to read.
   */
  uptime(): number;
}

/** The possible error by the wall clock's steps of a millisecond, in milliseconds. */
const ROUNDING_MS = 2;
/**
 * How long a reading of the uptime is trusted, in milliseconds: a wall clock that was set back can hide a
 * suspension.
 */
const TRUSTED_MS = 100;
/**
 * Maximum time between two readings that belong together, in milliseconds: after more, this process was
 * paused between them.
 */
const TOGETHER_MS = 5;

/**
 * A clock that continues while the machine is suspended, and never goes back. It is as exact and as cheap as
 * `running`: the uptime is read only now and then, and when the machine may have been suspended. A kernel
 * that wakes up moves the wall clock and the uptime forward against `running`, by the same time.
 */
export function suspendProof({ wall, running, uptime }: MachineClocks): () => number {
  let suspendedMs = 0;
  let readAt = Number.NEGATIVE_INFINITY;
  let wallAhead = 0;
  return () => {
    const now = running();
    const ahead = wall() - now;
    if (now - readAt < TRUSTED_MS && Math.abs(ahead - wallAhead) < ROUNDING_MS) return now + suspendedMs;
    const up = uptime();
    const after = running();
    const areTogether = after - now < TOGETHER_MS;
    if (areTogether) suspendedMs = Math.max(suspendedMs, up - after);
    readAt = areTogether ? now : Number.NEGATIVE_INFINITY;
    wallAhead = ahead;
    return Math.max(after + suspendedMs, up);
  };
}
