#!/bin/sh
true /*
# Both a shell script and a JavaScript module: the shell runs what is in this comment and never gets to its end, node skips it.
#
# As process 1 of a container the shell stays. Processes that lost their parent become children of process 1, which has to collect
# them when they end; node cannot, a shell does. It hands signals on and exits with the code of node.
# From a terminal ^C and ^\ reach the whole foreground group, node included: handing those on would double them.
if [ "$$" -ne 1 ]; then exec node "$0" "$@"; fi
main= early=
pass() { if [ -n "$main" ]; then kill -s "$1" "$main" 2>/dev/null; else early=$1; fi; }
for signal in TERM HUP USR1 USR2; do trap "pass $signal" "$signal"; done
for signal in INT QUIT; do if [ -t 0 ]; then trap : "$signal"; else trap "pass $signal" "$signal"; fi; done
exec 3<&0
node "$0" "$@" <&3 3<&- &
main=$!
if [ -n "$early" ]; then pass "$early"; fi
while :; do
  wait "$main"
  code=$?
  kill -s 0 "$main" 2>/dev/null || exit "$code"
done
*/
  .valueOf();

// From Node.js 22.8 on. Next to the program: who may write there may change the program, too.
require('node:module').enableCompileCache?.(`${__dirname}/compile-cache`);
require('./main.js');
