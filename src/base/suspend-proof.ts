/** Clocks of one machine, in milliseconds. */
export interface MachineClocks {
  /** The wall clock. */
  wall(): number;
  /** Stands still while the machine is suspended. */
  running(): number;
  /** Goes on while it is; counts from the same moment as `running`, in coarse steps, and is slow to read. */
  uptime(): number;
}

/** What the wall clock's steps of a millisecond may make out, in milliseconds. */
const ROUNDING_MS = 2;
/**
 * How long a reading of the uptime is trusted: the wall clock may have been set back just as it was set
 * forward. In milliseconds.
 */
const TRUSTED_MS = 100;
/**
 * Two readings further apart than this, in milliseconds, tell nothing together: this process was paused
 * between them.
 */
const TOGETHER_MS = 5;

/**
 * A clock that goes on while the machine is suspended, and never back. As exact as `running`, and as cheap:
 * the uptime is read only now and then, and where the machine may have been suspended. A kernel that wakes up
 * sets the wall clock and the uptime forward against `running`, by the same time.
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
