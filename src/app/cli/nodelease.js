#!/bin/sh
true /*
# Both a shell script and a JavaScript module: the shell runs what is in this comment and never gets to its end, node skips it.
#
# As process 1 of a container the shell stays. Processes that lost their parent become children of process 1, which has to collect
# them when they end; node cannot, a shell does. It hands signals on and exits with the code of node.
# From a terminal ^C and ^\ reach the whole foreground group, node included: handing those on would double them.
#
# Some shells drop the variables whose names they cannot have, such as a.b: node gets them in one that it takes apart.
keep() {
  NODELEASE_ENVIRON="$(LC_ALL=C grep -az -e '^[0-9]' -e '^[^=]*[^=A-Za-z0-9_]' | tr '\0' '\1')"
  # Linux starts no program with a variable of more than 128 KiB: then they are dropped.
  if [ "${#NODELEASE_ENVIRON}" -le 100000 ]; then export NODELEASE_ENVIRON; else unset NODELEASE_ENVIRON; fi
}
if [ "$$" -ne 1 ]; then keep 2>/dev/null </proc/self/environ; exec node "$0" "$@"; fi
main= early=
pass() { if [ -n "$main" ]; then kill -s "$1" "$main" 2>/dev/null; else early=$1; fi; }
for signal in TERM HUP USR1 USR2; do trap "pass $signal" "$signal"; done
for signal in INT QUIT; do if [ -t 0 ]; then trap : "$signal"; else trap "pass $signal" "$signal"; fi; done
keep 2>/dev/null </proc/self/environ
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

const { createHash } = require('node:crypto');
const fs = require('node:fs');
const { enableCompileCache } = require('node:module');
const { Script } = require('node:vm');

// Next to the program: who may write there may change the program, too.
const cache = `${__dirname}/compile-cache`;
const DIGEST_BYTES = 32;
const LEASE_LOST = 76;
/** Of processor time: V8 drops the bytecode of what has not been called for long. */
const LONGEST_START_MICROSECONDS = 2_000_000;

// What the shell above has kept.
for (const each of process.env.NODELEASE_ENVIRON?.split('\x01') ?? []) {
  const [name, ...value] = each.split('=');
  if (name) process.env[name] = value.join('=');
}
delete process.env.NODELEASE_ENVIRON;

// With such a umask anybody could write what later starts run.
const mayKeep = !process.env.NODE_DISABLE_COMPILE_CACHE && (process.umask() & 2) !== 0;
const chunks = new Map();
const compiled = [];
/** V8 refuses what it has compiled with other flags. */
let flags = 'default';

/**
 * Loads a file of the bundle, with the bytecode that an earlier start kept. Node's own cache keeps only what is compiled when a file is
 * loaded; most functions are compiled when they are first called.
 */
function load(name) {
  const known = chunks.get(name);
  if (known) return known.exports;
  const filename = `${__dirname}/${name}`;
  const source = fs.readFileSync(filename);
  // Of a source V8 compares no more than its length.
  const stored = `${cache}/${name}-${process.version}-${process.arch}-${flags}-${digest(source).toString('hex')}`;
  const cachedData = mayKeep ? bytecodeIn(stored) : undefined;
  const script = new Script(`(function (exports, require, module, __filename, __dirname) {${source}\n})`, {
    filename,
    cachedData,
  });
  if (mayKeep && (!cachedData || script.cachedDataRejected)) compiled.push([stored, script]);
  const module = { exports: {} };
  chunks.set(name, module);
  const requireFrom = (id) => (id.startsWith('./') ? load(id.slice(2)) : require(id));
  script.runInThisContext()(module.exports, requireFrom, module, filename, __dirname);
  return module.exports;
}

/** Undefined where there is none, or it is damaged: V8 itself would run it. */
function bytecodeIn(stored) {
  const content = attempt(() => fs.readFileSync(stored));
  const bytecode = content?.subarray(0, -DIGEST_BYTES);
  return bytecode && digest(bytecode).equals(content.subarray(-DIGEST_BYTES)) ? bytecode : undefined;
}

/** Keeps the bytecode of what has been called up to now. Where nothing may be written, each start compiles. */
function save() {
  const scripts = compiled.splice(0);
  if (scripts.length === 0 || !attempt(mayWrite)) return;
  for (const [stored, script] of scripts) {
    const unfinished = `${stored}-${process.hrtime.bigint()}`;
    const isSaved = attempt(() => {
      const bytecode = script.createCachedData();
      fs.writeFileSync(unfinished, Buffer.concat([bytecode, digest(bytecode)]), { flag: 'wx' });
      fs.renameSync(unfinished, stored);
      return true;
    });
    // The disk is full.
    if (!isSaved) attempt(() => fs.rmSync(unfinished));
  }
}

function mayWrite() {
  fs.mkdirSync(cache, { recursive: true });
  fs.accessSync(cache, fs.constants.W_OK);
  return true;
}

function digest(content) {
  return createHash('sha256').update(content).digest();
}

function attempt(action) {
  try {
    return action();
  } catch {
    return undefined;
  }
}

if (mayKeep) {
  // What is installed next to the bundle, such as another store's client, has Node's own cache (22.8 on).
  enableCompileCache?.(cache);
  process.on('exit', (exitCode) => {
    // A lost lease ends the process at once.
    if (exitCode !== LEASE_LOST && process.cpuUsage().user < LONGEST_START_MICROSECONDS) save();
  });
}
load('main.js').main(() => {
  save();
  flags = 'lean';
});
