import { type ChildProcess, spawn } from 'node:child_process';
import { readFileSync } from 'node:fs';
import type { Clock } from '../clock.js';
import { lookUpCommand } from './command-lookup.js';
import { GUARD_SCRIPT } from './guard-script.js';

/** The shell that the guard and the gate run in. */
export const SHELL = '/bin/sh';

/**
 * A second process that ends the child's process group when this one is killed, paused or hung.
 * It rests on nothing here but the pipe between the two.
 */
export interface Guard {
  /** Names the process group to end. Call it before the child's own command begins. */
  watch(groupId: number): void;

  /** Ends the group shortly before `deadline`, in milliseconds on the monotonic clock, unless this is called again with a later one. */
  extend(deadline: number): void;

  /** The work has ended, or will be ended without the guard. Idempotent. */
  done(): void;

  /** Resolves, with the reason, when the guard ends before `done()`: from then on the child is not protected. */
  readonly failed: Promise<string>;
}

/** What a guard needs. */
export interface GuardOptions {
  readonly clock: Clock;
  /** The `PATH` on which the guard finds `sleep`. */
  readonly path: string | undefined;
  /** What /proc/uptime says, as its own text. Undefined where there is none. @default reads it */
  readonly uptime?: () => string | undefined;
}

/**
 * How long before the deadline the guard strikes, in milliseconds: room for starting `sleep` and `kill`, and for /proc/uptime
 * counting in hundredths. The supervisor, as long as it lives, is faster.
 */
export const GUARD_MARGIN_MS = 30;

/** True when this machine has what a guard needs: a shell, and `sleep`. */
export function canGuard(path: string | undefined): boolean {
  return lookUpCommand(SHELL, path) === 'executable' && lookUpCommand('sleep', path) === 'executable';
}

/**
 * Starts a guard. It lives in a session of its own, so that a signal to this process' group misses it, and is known to
 * the process list as `lease-guard`.
 */
export function startGuard({ clock, path, uptime = readUptime }: GuardOptions): Guard {
  // The script goes through the environment, so that the process list stays readable.
  const shell = spawn(SHELL, ['-c', 'eval "$LEASE_GUARD"', 'lease-guard'], {
    detached: true,
    stdio: ['pipe', 'ignore', 'ignore'],
    env: { PATH: path, LEASE_GUARD: GUARD_SCRIPT },
  });
  let finished = false;
  const tell = (line: string) => {
    if (!finished && shell.stdin.writable) shell.stdin.write(`${line}\n`);
  };
  // A guard that has ended is reported by `failed`; a write that it did not read adds nothing.
  shell.stdin.on('error', () => undefined);
  return {
    watch: (groupId) => tell(`group ${groupId}`),
    extend(deadline) {
      if (!Number.isFinite(deadline)) return;
      // The uptime first: a pause between the two readings then makes the guard strike early, not late.
      const up = uptime();
      const left = deadline - GUARD_MARGIN_MS - clock.monotonic();
      tell(up === undefined ? `for ${seconds(Math.max(0, left))}` : `until ${seconds(Math.max(0, Number.parseFloat(up) * 1_000 + left))}`);
    },
    done() {
      tell('done');
      finished = true;
      shell.stdin.end();
    },
    failed: untilFailure(shell, () => finished),
  };
}

function untilFailure(shell: ChildProcess, isExpected: () => boolean): Promise<string> {
  return new Promise<string>((resolve) => {
    const report = (reason: string) => {
      if (!isExpected()) resolve(reason);
    };
    shell.once('error', (error) => report(error.message));
    shell.once('exit', (code, signal) => report(signal === null ? `it exited with code ${code}` : `it was ended by ${signal}`));
  });
}

/** Milliseconds as whole seconds and exactly two further digits, cut and never rounded up. */
function seconds(ms: number): string {
  const hundredths = Math.floor(ms / 10);
  return `${Math.floor(hundredths / 100)}.${String(hundredths % 100).padStart(2, '0')}`;
}

function readUptime(): string | undefined {
  try {
    const text = readFileSync('/proc/uptime', 'utf8');
    return /^\d+\.\d\d /.test(text) ? text : undefined;
  } catch {
    return undefined;
  }
}
