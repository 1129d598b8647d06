import type { Clock } from '../clock.js';
import { type Lease, LeaseLostError } from '../lease/lease.js';
import type { ProcessGroup } from './process-group.js';

/** How a process group is to be ended. */
export interface EndGroupOptions {
  readonly lease: Lease;
  readonly clock: Clock;
  /** How long the group has between SIGTERM and SIGKILL, in milliseconds; less where the lease ends sooner. */
  readonly patienceMs: number;
  /** Asked again and again: true gives up waiting. */
  readonly abandoned?: () => boolean;
  /** Called once when there is something to be ended. */
  readonly onFound?: () => void;
  /** Called once when SIGKILL did not end the group at once. */
  readonly onStuck?: () => void;
}

/** How long killed processes may take to go, in milliseconds, before they count as stuck in the kernel. */
const STUCK_MS = 2_000;
/** How long before the deadline SIGKILL is sent, in milliseconds: a quarter of what is left, within these bounds. */
const KILL_MARGIN_MS = { least: 50, most: 500 };
/** How often the group is looked at, in milliseconds. */
const POLL_MS = { first: 2, longest: 40 };

/**
 * Ends a process group: SIGTERM, then SIGKILL when its patience ends or shortly before the lease does. Where somebody else may hold the
 * node id already (rule 7) it is SIGKILL at once.
 *
 * Resolves to true once no member is left. As long as the lease is held it waits for that without limit, since the node id must not go to
 * anybody else (rule 8); once the lease is lost it resolves to false when killed processes do not go.
 */
export async function endGroup(group: ProcessGroup, options: EndGroupOptions): Promise<boolean> {
  const { lease, clock, patienceMs, abandoned, onFound, onStuck } = options;
  if (!group.isAlive()) return true;
  onFound?.();
  const patientUntil = clock.monotonic() + patienceMs;
  const marginMs = killMargin(stopBy(lease) - clock.monotonic());
  let termSent = false;
  let killedAt: number | undefined;
  let stuck = false;
  for (let pollMs = POLL_MS.first; group.isAlive(); pollMs = Math.min(POLL_MS.longest, pollMs * 2)) {
    const now = clock.monotonic();
    const killAt = Math.min(patientUntil, stopBy(lease) - marginMs);
    if (now >= killAt) {
      group.signal('SIGKILL');
      killedAt ??= now;
    } else if (!termSent) {
      group.signal('SIGTERM');
      termSent = true;
    }
    if (abandoned?.()) return false;
    if (killedAt !== undefined && now - killedAt >= STUCK_MS) {
      if (!lease.isValid()) return false;
      if (!stuck) onStuck?.();
      stuck = true;
    }
    await clock.sleep(now >= killAt ? pollMs : Math.min(pollMs, killAt - now));
  }
  return true;
}

/** By when no work may be left, as of now: minus infinity when somebody else may be at work already. */
function stopBy(lease: Lease): number {
  const loss: unknown = lease.signal.aborted ? lease.signal.reason : undefined;
  if (loss instanceof LeaseLostError && loss.reason === 'unreachable') return loss.deadline;
  return lease.isValid() ? lease.deadline : Number.NEGATIVE_INFINITY;
}

function killMargin(leftMs: number): number {
  return Math.min(KILL_MARGIN_MS.most, Math.max(KILL_MARGIN_MS.least, leftMs / 4));
}
