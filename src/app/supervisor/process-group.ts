import { readdirSync, readFileSync, readlinkSync } from 'node:fs';
import type { Clock } from '../../core/base/clock.js';
import { codeOf } from '../../core/base/files.js';
import { leavesTime } from '../../core/lease/model/lease.js';
import { type Held, lossOf } from './held.js';

/**
 * Processes that are ended as one: a process group, and where there is /proc all groups of its session, such as
 * those that `timeout` and a shell with job control make.
 */
export interface ProcessGroup {
  /** Its number: the process id of its first member, which leads the session. */
  readonly id: number;
  /**
   * Sends a signal to every member. Does nothing once the group has been seen to be gone.
   * @param inForeground to those of the first group alone, as a terminal does
   */
  signal(signal: NodeJS.Signals, inForeground?: boolean): void;
  /**
   * Whether some member may still be at work: not one that has ended and was not collected, nor one in
   * another session, as daemons are.
   */
  isAlive(): boolean;
}

/** The group of processes that the operating system knows by `id`. */
export function systemProcessGroup(id: number): ProcessGroup {
  // The number may be given to others once the group is gone, so a group that was seen to be gone is never
  // asked for again.
  let gone = false;
  return {
    id,
    signal(signal, inForeground) {
      if (gone) return;
      signalGroup(id, signal);
      if (inForeground) return;
      const groups = new Set(membersOf(id).map(([, , group]) => Number(group)));
      groups.delete(id);
      for (const group of groups) signalGroup(group, signal);
    },
    isAlive() {
      gone ||= !hasMembers(id);
      return !gone;
    },
  };
}

/** False if there is no such group. EPERM: there are members, and none that may be signalled. */
function signalGroup(id: number, signal: NodeJS.Signals | 0): boolean {
  try {
    return process.kill(-id, signal);
  } catch (error) {
    return codeOf(error) !== 'ESRCH';
  }
}

function hasMembers(id: number): boolean {
  // Ended members that their parent has not collected count for kill(2). Where process 1 collects none they
  // stay for ever.
  const members = membersOf(id);
  return members.length > 0 ? members.some((stat) => !hasEnded(stat)) : signalGroup(id, 0);
}

/** What /proc says of each member. Empty where there is no /proc, or where it hides them. */
function membersOf(id: number): readonly string[][] {
  try {
    // That of another namespace has other numbers.
    if (readlinkSync('/proc/self') !== `${process.pid}`) return [];
    return readdirSync('/proc')
      .flatMap((name) => (/^\d+$/.test(name) ? [statOf(name)] : []))
      .filter(([, , group, session]) => Number(group) === id || Number(session) === id);
  } catch {
    return [];
  }
}

/**
 * The fields of /proc/PID/stat from its third one, the state, on: `state ppid pgrp session …`; empty for a process
 * that is gone.
 */
function statOf(pid: string): string[] {
  try {
    const stat = readFileSync(`/proc/${pid}/stat`, 'utf8');
    // proc(5): pid (name) state …; the name may contain anything.
    return stat.slice(stat.lastIndexOf(')') + 2).split(' ');
  } catch {
    return [];
  }
}

/** The 20th field of all is the number of threads. */
function hasEnded(stat: readonly string[]) {
  return stat[0] === 'X' || (stat[0] === 'Z' && Number(stat[17]) <= 1);
}

/** How a process group is to be ended. */
interface EndGroupOptions {
  readonly lease: Held;
  readonly clock: Clock;
  /**
   * How long the group has between SIGTERM and SIGKILL, in milliseconds; less where the lease ends sooner.
   */
  readonly graceMs: number;
  /** Asked again and again: true gives up waiting. */
  readonly abandoned?: () => boolean;
  /** Called once when there is something to be ended. */
  readonly onFound?: () => void;
  /** Called once when SIGKILL did not end the group at once. */
  readonly onStuck?: () => void;
}

/** How long killed processes may take to go, in milliseconds, before they count as stuck in the kernel. */
const STUCK_MS = 2_000;
/**
 * How long before the deadline SIGKILL is sent, in milliseconds: a quarter of what is left, within these
 * bounds.
 */
const KILL_MARGIN_MS = { min: 50, max: 500 };
/** How often the group is looked at, in milliseconds. */
const POLL_MS = { min: 2, max: 40 };

/**
 * Ends a process group: SIGTERM, then SIGKILL when its grace ends or shortly before the lease does. Where
 * another task may hold the node id already (rule 7) it is SIGKILL at once.
 *
 * Resolves to true once no member is left. As long as the lease is held it waits for that without limit,
 * since the node id must not go to another task (rule 8); once the lease is lost it resolves to false when
 * killed processes do not go.
 */
export async function endGroup(group: ProcessGroup, options: EndGroupOptions): Promise<boolean> {
  const { lease, clock, graceMs, abandoned, onFound, onStuck } = options;
  if (!group.isAlive()) return true;
  onFound?.();
  const graceUntil = clock.monotonic() + graceMs;
  const shareMs = (stopBy(lease) - clock.monotonic()) / 4;
  const marginMs = Math.min(KILL_MARGIN_MS.max, Math.max(KILL_MARGIN_MS.min, shareMs));
  let termSent = false;
  let killedAt: number | undefined;
  let stuck = false;
  for (let pollMs = POLL_MS.min; group.isAlive(); pollMs = Math.min(POLL_MS.max, pollMs * 2)) {
    const now = clock.monotonic();
    const killAt = Math.min(graceUntil, stopBy(lease) - marginMs);
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

/** By when no work may be left, as of now: minus infinity when another task may be at work already. */
function stopBy(lease: Held): number {
  const loss = lossOf(lease);
  if (loss !== undefined && leavesTime(loss.reason)) return loss.deadline;
  return lease.isValid() ? lease.deadline : Number.NEGATIVE_INFINITY;
}
