import { readdirSync, readFileSync } from 'node:fs';
import { setTimeout as sleep } from 'node:timers/promises';

/**
 * A process that this one did not start itself, distinguished from a later one of the same number by the time
 * of its start. Without that, a signal meant for a process that has ended could hit a stranger.
 */
export class ProcessHandle {
  readonly #startedAt: string | undefined;

  constructor(readonly pid: number) {
    this.#startedAt = read(pid)?.startedAt;
  }

  /** True while it is at work or stopped; not for one that has ended and was not collected yet. */
  isAlive(): boolean {
    const now = read(this.pid);
    return (
      now !== undefined &&
      this.#startedAt !== undefined &&
      now.startedAt === this.#startedAt &&
      !/^[ZX]$/.test(now.state)
    );
  }

  /** True while SIGSTOP holds it, with all of its threads. */
  isStopped(): boolean {
    if (!this.isAlive()) return false;
    const threads = threadsOf(this.pid);
    return threads.length > 0 && threads.every((thread) => read(`${this.pid}/task/${thread}`)?.state === 'T');
  }

  /**
   * Stops it (SIGSTOP), and resolves when it stands still: a busy machine lets a thread go on for a while,
   * and answer a request.
   */
  async pause(): Promise<void> {
    this.signal('SIGSTOP');
    while (this.isAlive() && !this.isStopped()) await sleep(5);
  }

  /** Sends a signal; false when it has ended. */
  signal(signal: NodeJS.Signals): boolean {
    if (!this.isAlive()) return false;
    try {
      return process.kill(this.pid, signal);
    } catch {
      return false;
    }
  }
}

/** The processes whose parent is `pid`, as of now. */
export function childHandles(pid: number): ProcessHandle[] {
  try {
    const children = readFileSync(`/proc/${pid}/task/${pid}/children`, 'utf8');
    return children
      .split(' ')
      .filter(Boolean)
      .map((child) => new ProcessHandle(Number(child)));
  } catch {
    return [];
  }
}

/** None where it has ended. */
function threadsOf(pid: number): string[] {
  try {
    return readdirSync(`/proc/${pid}/task`);
  } catch {
    return [];
  }
}

/**
 * proc(5): the state is the third field, the start time the 22nd; the second, the name, may contain anything.
 */
function read(pid: number | string): { state: string; startedAt: string } | undefined {
  try {
    const stat = readFileSync(`/proc/${pid}/stat`, 'utf8');
    const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ');
    return { state: fields[0] ?? '', startedAt: fields[19] ?? '' };
  } catch {
    return undefined;
  }
}
