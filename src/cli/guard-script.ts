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
 * - A timer is a subshell of its own. Whichever way it ends, other than by being disarmed with USR1, its EXIT trap strikes:
 *   a `fork` that fails must not leave the child without a deadline.
 * - SIGKILL runs no trap, so there are two timers: either strikes without the other. The next line replaces both.
 * - It sleeps for a second at most and looks at the time again: `sleep` stands still while the machine is suspended, /proc/uptime goes on.
 * - The new timers run before the old ones are disarmed, so there are always two.
 * - `1${x#*.} - 1${y#*.}` subtracts hundredths such as 08, which would be bad octal numbers on their own; seconds are subtracted before
 *   they are multiplied, so that 32 bits suffice.
 * - `kill -KILL -N` is the one spelling that all these shells read as a group.
 * - A `sleep` that knows no fractions fails at once: the group is then ended up to a second early, never late.
 */
export const GUARD_SCRIPT = `
trap '' HUP INT QUIT TERM
group= timers= nap=
strike() { [ -z "$group" ] || kill -KILL "-$group"; }
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
 * Starts the child's command once the guard has been told of it: waits for a line on file descriptor 3, and gives up when the
 * supervisor dies before it is written. Where util-linux' `setpriv` works, the command is also ended by the kernel when the supervisor dies.
 */
export const GATE_SCRIPT = `
read -r go <&3 || exit 76
exec 3<&-
if setpriv --pdeathsig KILL -- true 2>/dev/null; then exec setpriv --pdeathsig KILL -- "$@"; fi
exec "$@"
`;
