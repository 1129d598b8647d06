import { spawn } from 'node:child_process';
import { readFileSync } from 'node:fs';
import type { Writable } from 'node:stream';
import type { Clock } from '../../core/base/clock.js';
import { lookUpCommand } from './command-lookup.js';

/** The shell that the guard and the gate run in. */
export const SHELL = '/bin/sh';

/**
 * The guard: a shell process that ends the child's process group when the supervisor can no longer do it.
 *
 * It reads lines from its standard input:
 * - `group N`: the process group to end;
 * - `until S.CC`: end it when /proc/uptime shows this time, unless a later line says otherwise;
 * - `for S.CC`: the same, counted from now on, where there is no /proc/uptime;
 * - `done`: the work has ended, so does the guard.
 *
 * The end of the input without `done` means that the supervisor died: the group is ended at once.
 *
 * POSIX shell only (dash, the ash of busybox, bash). What is less obvious:
 * - Each timer is a subshell. Whichever way it ends, other than by being disarmed with USR1, its EXIT
 *   trap strikes: a `fork` that fails must not leave the child without a deadline.
 * - SIGKILL runs no trap, so there are two timers: either strikes without the other. The next line replaces
 *   both.
 * - It sleeps for a second at most and looks at the time again: `sleep` does not count while the machine is
 *   suspended, /proc/uptime continues.
 * - The new timers run before the old ones are disarmed, so there are always two.
 * - `1${x#*.} - 1${y#*.}` subtracts hundredths such as 08, which would be bad octal numbers on their own;
 *   seconds are subtracted before they are multiplied, so that 32 bits suffice.
 * - `kill -KILL -N` is the one spelling that all these shells read as a group.
 * - Then it strikes at the rest of the session, by /proc/PID/stat: `pid (name) state ppid group session …`. Twice,
 *   for what began meanwhile. A /proc of another namespace has other numbers.
 * - A `sleep` that knows no fractions fails at once: the group is then ended up to a second early, never
 *   late.
 */
const GUARD_SCRIPT = `
trap '' HUP INT QUIT TERM
group= timers= nap= proc=/proc
read -r self rest </proc/self/stat
[ "$self" = $$ ] || proc=/none
strike() {
  [ -n "$group" ] || return
  kill -KILL "-$group"
  for again in 1 2; do
    for pid in $(grep -ls ") . [0-9]* [0-9]* $group [^)]*$" $proc/[0-9]*/stat); do
      pid=\${pid%/stat}
      kill -KILL "\${pid##*/}"
    done
  done
}
nap() { sleep "$1" & nap=$!; wait "$nap"; set -- $?; nap=; return "$1"; }
drop() { trap - EXIT; [ -z "$nap" ] || { kill -s KILL "$nap"; wait "$nap"; }; exit 0; }
count() {
  trap drop USR1
  trap strike EXIT
  if [ "$1" = for ]; then nap "$2" || nap "\${2%.*}"; exit; fi
  while :; do
    read -r now rest </proc/uptime
    left=$(( (\${2%.*} - \${now%.*}) * 100 + 1\${2#*.} - 1\${now#*.} ))
    case $left in
      -* | 0) exit ;;
      ?) nap "0.0$left" || exit ;;
      ??) nap "0.$left" || exit ;;
      *) nap 1 || exit ;;
    esac
  done
}
arm() { count "$@" & timers=$!; count "$@" & timers="$timers $!"; }
disarm() { for timer in $1; do kill -s USR1 "$timer"; wait "$timer"; done; }
while read -r word value; do
  case $word in
    group) group=$value ;;
    until | for) last=$timers; arm "$word" "$value"; disarm "$last" ;;
    done) disarm "$timers"; exit 0 ;;
  esac
done
strike
disarm "$timers"
`;

/**
 * A second process that ends the child's process group when this one is killed, paused or hung.
 * It rests on nothing here but the pipe between the two.
 */
export interface Guard {
  /** Names the process group to end. Call it before the child's own command begins. */
  watch(groupId: number): void;

  /**
   * Ends the group shortly before `deadline`, in milliseconds on the monotonic clock, unless this is called
   * again with a later one.
   */
  extend(deadline: number): void;

  /** The work has ended, or will be ended without the guard. Idempotent. */
  done(): void;

  /**
   * Resolves, with the reason, when the guard ends before `done()`: from then on the child is not protected.
   */
  readonly failed: Promise<string>;
}

/** What a guard needs. */
interface GuardOptions {
  readonly clock: Clock;
  /** The `PATH` on which the guard finds `sleep`. */
  readonly path: string | undefined;
  /** What /proc/uptime says, as its own text. Undefined where there is none. @default reads it */
  readonly uptime?: () => string | undefined;
}

/**
 * How long before the deadline the guard strikes, in milliseconds: room for starting `sleep` and `kill`, and
 * for /proc/uptime counting in hundredths. The supervisor, while it lives, is faster.
 */
export const GUARD_MARGIN_MS = 30;

/** True when this machine has what a guard needs: a shell, and `sleep`. */
export function canGuard(path: string | undefined): boolean {
  return lookUpCommand(SHELL, path) === 'executable' && lookUpCommand('sleep', path) === 'executable';
}

/**
 * Starts a guard. It has its own session, so that a signal to this process' group misses it, and is
 * known to the process list as `lease-guard`.
 */
export function startGuard({ clock, path, uptime = readUptime }: GuardOptions): Guard {
  // The script goes through the environment, so that the process list stays readable.
  const shell = spawn(SHELL, ['-c', 'eval "$LEASE_GUARD"', 'lease-guard'], {
    detached: true,
    stdio: ['pipe', 'ignore', 'ignore'],
    env: { PATH: path, LEASE_GUARD: GUARD_SCRIPT },
  });
  // None where no descriptor was left for it: `failed` says so.
  const { stdin }: { readonly stdin?: Writable } = shell;
  let finished = false;
  const write = (line: string) => {
    if (!finished && stdin?.writable) stdin.write(`${line}\n`);
  };
  // A guard that has ended is reported by `failed`; a write that it did not read adds nothing.
  stdin?.on('error', () => undefined);
  return {
    watch: (groupId) => write(`group ${groupId}`),
    extend(deadline) {
      if (!Number.isFinite(deadline)) return;
      // The uptime first: a pause between the two readings then makes the guard strike early, not late.
      const up = uptime();
      const left = deadline - GUARD_MARGIN_MS - clock.monotonic();
      write(
        up === undefined
          ? `for ${seconds(Math.max(0, left))}`
          : `until ${seconds(Math.max(0, Number.parseFloat(up) * 1_000 + left))}`,
      );
    },
    done() {
      write('done');
      finished = true;
      stdin?.end();
    },
    failed: new Promise<string>((resolve) => {
      const report = (reason: string) => {
        if (!finished) resolve(reason);
      };
      shell.once('error', (error) => report(error.message));
      shell.once('exit', (code, signal) =>
        report(signal === null ? `it exited with code ${code}` : `it was ended by ${signal}`),
      );
    }),
  };
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
