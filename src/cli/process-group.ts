import { readdirSync, readFileSync } from 'node:fs';

/** A group of processes that is ended as one. */
export interface ProcessGroup {
  /** Its number: the process id of its first member. */
  readonly id: number;

  /** Sends a signal to every member. Does nothing once the group has been seen to be gone. */
  signal(signal: NodeJS.Signals): void;

  /**
   * True while some member may still be at work. Ended processes that nobody has collected yet do not count.
   * Processes that have moved to another group, as daemons do, cannot be seen.
   */
  isAlive(): boolean;
}

/** The group of processes that the operating system knows by `id`. */
export function systemProcessGroup(id: number): ProcessGroup {
  // The number may be given to others once the group is gone, so a group that was seen to be gone is never asked for again.
  let gone = false;
  return {
    id,
    signal(signal) {
      if (gone) return;
      try {
        process.kill(-id, signal);
      } catch (error) {
        if (errorCode(error) === 'ESRCH') gone = true;
      }
    },
    isAlive() {
      gone ||= !hasMembers(id);
      return !gone;
    },
  };
}

function hasMembers(id: number): boolean {
  try {
    process.kill(-id, 0);
  } catch (error) {
    // EPERM: there are members, and none that may be signalled.
    return errorCode(error) !== 'ESRCH';
  }
  // Ended members that their parent has not collected count for kill(2). Where process 1 collects none they stay for ever.
  const states = memberStates(id);
  return states === undefined || states.length === 0 || states.includes('working');
}

type MemberState = 'working' | 'ended';

/** What /proc says about the group's members; undefined where there is no /proc. */
function memberStates(id: number): MemberState[] | undefined {
  let entries: string[];
  try {
    entries = readdirSync('/proc');
  } catch {
    return undefined;
  }
  const states: MemberState[] = [];
  for (const entry of entries) {
    if (!/^\d+$/.test(entry)) continue;
    let stat: string;
    try {
      stat = readFileSync(`/proc/${entry}/stat`, 'utf8');
    } catch {
      continue;
    }
    // proc(5): pid (name) state ppid pgrp … with the number of threads as the 20th field; the name may contain anything.
    const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ');
    if (Number(fields[2]) !== id) continue;
    const ended = fields[0] === 'X' || (fields[0] === 'Z' && Number(fields[17]) <= 1);
    states.push(ended ? 'ended' : 'working');
  }
  return states;
}

function errorCode(error: unknown): unknown {
  return error instanceof Error && 'code' in error ? error.code : undefined;
}
