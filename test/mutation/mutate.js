// Mutation testing: changes the code in one place at a time, and lists the changes that no test notices.
//   npm run mutate -- FILES     source files or folders; test files among them are the only killers
// "Mutation testing" in docs/design/testing.md says more.
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdirSync, readdirSync, readFileSync, statSync, writeFileSync } from 'node:fs';
import { dirname, join, resolve } from 'node:path';
import { Instrumenter } from '@stryker-mutator/instrumenter';
import { EQUIVALENT } from './equivalent.js';

const FOLDER = '.harness/mutation';
const ALWAYS = 'test/arguments.test.ts';
/** What kills the mutants of a room: the unit tests in these folders, and seeds of these engines. */
const KILLERS = {
  'src/core/lease': [
    ['src/core/lease', 'src/core/id', 'src/zookeeper/recipes'],
    ['shipped', 'observed', 'sticky', 'shards'],
  ],
  'src/core/id': [['src/core/id'], ['shipped']],
  'src/node/shards': [['src/node/shards'], ['shards']],
  'src/zookeeper/recipes': [['src/zookeeper/recipes'], ['recipes']],
};
const JOBS = [0, 1];
/** A mutant that does nothing for that long is in an endless loop, in milliseconds. */
const STUCK_MS = 3_000;
/** How long a run of tests takes to begin, at most, and a run of all, in milliseconds. */
const START_MS = 12_000;
const WHOLE_MS = 180_000;
/** The durations of the tests of each pass over the mutants, in milliseconds. Longer ones measure loads. */
const LIMITS_MS = [30, 200];

const isTest = (file) => file.endsWith('.test.ts');
const named = process.argv.slice(2).flatMap(filesIn);
const files = named.filter((file) => !isTest(file));
if (files.length === 0) throw new Error('npm run mutate -- FILES: no source file is named');
const rooms = files.map((file) => file.split('/').slice(0, 3).join('/'));
const killers = rooms.map((room) => KILLERS[room] ?? [[room], []]);
const tests = [...killers.flatMap(([folders]) => folders).flatMap(filesIn), ALWAYS].filter(isTest);
/** The killers, by file and engine: the nearest ones first, since they are quick and kill most. */
const stages = process.argv.slice(2).some(isTest)
  ? [[named.filter(isTest), []]]
  : [
      [files.map(dirname).flatMap(filesIn).filter(isTest), []],
      [tests, killers.flatMap(([, names]) => names)],
    ];

const silent = { isDebugEnabled: () => false, debug: () => {}, info: () => {} };
const { files: instrumented, mutants } = await new Instrumenter(silent).instrument(
  files.map((name) => ({ name, mutate: true, content: readFileSync(name, 'utf8') })),
  { plugins: null, excludedMutations: [], ignorers: [] },
);
const code = Object.fromEntries(instrumented.map(({ name, content }) => [resolve(name), content]));
const rows = new Map(mutants.map((mutant) => [mutant.id, rowOf(mutant)]));
const wanted = [...rows].filter(([, row]) => !isEquivalent(row)).map(([id]) => id);
/** The mutants that are killed: `k` by a failure, `t` by an endless loop. */
const killed = new Map();
const logOf = (number) => `${FOLDER}/log-${number}.txt`;

mkdirSync(FOLDER, { recursive: true });
for (const number of JOBS) writeFileSync(logOf(number), '');
/** The mutants that a test covers. */
const tested = new Set();
// An interrupted run prints what it knows.
for (const signal of ['SIGINT', 'SIGTERM'])
  process.once(signal, () => {
    for (const number of JOBS) noteKills(number);
    print();
    process.exit(1);
  });
for (const [tests, engines] of stages.filter(([tests]) => tests.length > 0)) {
  const living = wanted.filter((id) => !killed.has(id));
  if (living.length === 0) break;
  const job = {
    tests: [...new Set(tests)],
    engines: [...new Set(engines)],
    code,
    coverage: `${FOLDER}/coverage.json`,
  };
  if ((await vitest('coverage', job)) !== 'passed') throw new Error('the tests fail without a mutant');
  const covered = JSON.parse(readFileSync(job.coverage, 'utf8'));
  for (const hits of [...Object.values(covered.perTest), covered.always])
    for (const id of Object.keys(hits)) tested.add(id);
  const shareOf = (number) => living.filter((_, at) => at % JOBS.length === number);
  await Promise.all(JOBS.map((number) => kill(shareOf(number), number, job, covered)));
}
print();

async function kill(ids, number, job, { perTest, always, durations }) {
  let fromMs = -1;
  for (const toMs of LIMITS_MS) {
    const pass = Object.entries(perTest).filter(
      ([test]) => durations[test] > fromMs && durations[test] <= toMs,
    );
    for (let outcome = 'stuck'; outcome === 'stuck'; ) {
      const isWanted = ([id]) => ids.includes(id) && !killed.has(id);
      const todo = Object.fromEntries(
        pass.map(([test, hits]) => [test, Object.entries(hits).filter(isWanted)]),
      );
      outcome = await vitest(`kill-${number}`, { ...job, durations, todo, log: logOf(number) });
      const last = noteKills(number);
      if (outcome === 'stuck') killed.set(last, 't');
    }
    fromMs = toMs;
  }
  // What runs when a module is loaded needs a run of its own.
  for (const id of ids)
    if (id in always && !killed.has(id)) {
      const outcome = await vitest(
        `always-${number}`,
        { ...job, durations, longestMs: LIMITS_MS.at(-1) },
        { __STRYKER_ACTIVE_MUTANT__: id },
      );
      if (outcome !== 'passed') killed.set(id, outcome === 'stuck' ? 't' : 'k');
    }
}

/** Empties the log. Returns the mutant of the last attempt. */
function noteKills(number) {
  let last;
  for (const line of readFileSync(logOf(number), 'utf8').split('\n').slice(0, -1)) {
    const [what, id] = line.split(' ');
    if (what === 's') last = id;
    else killed.set(id, what);
  }
  writeFileSync(logOf(number), '');
  return last;
}

/** Runs tests; resolves to `passed`, `failed` or `stuck`. */
async function vitest(name, settings, env = {}) {
  const file = resolve(`${FOLDER}/${name}.json`);
  writeFileSync(file, JSON.stringify(settings));
  const args = ['node_modules/vitest/vitest.mjs', 'run', '--config', 'test/mutation/vitest.config.ts'];
  const child = spawn(process.execPath, args, {
    stdio: ['ignore', 'ignore', name === 'coverage' ? 'inherit' : 'ignore'],
    env: { ...process.env, ...env, NODELEASE_MUTATION: file },
  });
  const begun = Date.now();
  const watch = setInterval(() => {
    const idleMs =
      Date.now() -
      (settings.log ? Math.max(begun + START_MS, statSync(settings.log).mtimeMs) : begun + WHOLE_MS);
    if (idleMs > STUCK_MS) child.kill('SIGKILL');
  }, 1_000);
  const [status] = await once(child, 'exit');
  clearInterval(watch);
  // By a signal: from here, or from the runner.
  if (status === null) return 'stuck';
  return status === 0 ? 'passed' : 'failed';
}

function filesIn(path) {
  if (statSync(path).isDirectory()) return readdirSync(path).flatMap((name) => filesIn(join(path, name)));
  return /(\.(deep|timing)\.test|\/index)\.ts$/.test(path) || !path.endsWith('.ts') ? [] : [path];
}

/** A mutant as in the table of the equivalent ones. */
function rowOf({ fileName, location: { start, end }, replacement }) {
  const lines = readFileSync(fileName, 'utf8').split('\n');
  const part = lines.slice(start.line, end.line + 1);
  part.push(part.pop().slice(0, end.column));
  const from = [part[0].slice(start.column), ...part.slice(1)].join('\n');
  return { file: fileName, number: start.line + 1, line: lines[start.line].trim(), from, to: replacement };
}

function isEquivalent({ file, line, from, to }) {
  return EQUIVALENT[file]?.some((row) => row.line === line && row.from === from && row.to === to) ?? false;
}

function print() {
  const survivors = wanted.filter((id) => !killed.has(id));
  for (const id of survivors) {
    const { file, number, ...row } = rows.get(id);
    console.log(`${file}:${number}${tested.has(id) ? '' : ' (no test)'} ${JSON.stringify(row)}`);
  }
  const endless = [...killed.values()].filter((what) => what === 't').length;
  const score = ((100 * (wanted.length - survivors.length)) / wanted.length).toFixed(1);
  console.log(
    `${score} % of ${wanted.length} mutants killed, ${endless} of them endless; ${survivors.length} survive; ${rows.size - wanted.length} are equivalent`,
  );
}
