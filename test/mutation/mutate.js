// Mutation testing: changes the code in one place at a time, and lists the changes that no test notices.
//   npm run mutate -- FILES     source files or folders, such as src/core/lease/hold
// docs/design/testing.md says what a mutant must pass, and what to do with those that survive.
import { spawn } from 'node:child_process';
import { mkdirSync, readdirSync, readFileSync, statSync, writeFileSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { Instrumenter } from '@stryker-mutator/instrumenter';
import { EQUIVALENT } from './equivalent.js';

const FOLDER = process.env.MUTATION_FOLDER ?? '.harness/mutation';
/** The folders whose unit tests run the code of a room, and the engines of the simulation that do. */
const KILLERS = {
  'src/core/lease': {
    tests: ['src/core/lease', 'src/core/id', 'src/zookeeper/recipes'],
    engines: ['shipped', 'observed', 'sticky', 'shards'],
  },
  'src/core/id': { tests: ['src/core/id'], engines: ['shipped'] },
  'src/node/shards': { tests: ['src/node/shards'], engines: ['shards'] },
  'src/zookeeper/recipes': { tests: ['src/zookeeper/recipes'], engines: ['recipes'] },
};
const JOBS = 2;
/** A mutant that does nothing for that long is in an endless loop, in milliseconds. */
const STUCK_MS = 10_000;
/** The durations of the tests of each pass over the mutants, in milliseconds. Longer ones measure loads. */
const LIMITS_MS = [30, 200];

const logOf = (job) => `${FOLDER}/log-${job}.txt`;

const files = process.argv.slice(2).flatMap(sourcesIn);
if (files.length === 0) throw new Error('npm run mutate -- FILES: no source file is named');
const rooms = [...new Set(files.map((file) => file.split('/').slice(0, 3).join('/')))];
const killers = rooms.map((room) => KILLERS[room] ?? { tests: [room], engines: [] });
const tests = process.env.ROOMS?.split(',') ?? [...new Set(killers.flatMap(({ tests }) => tests))];
const engines = process.env.ROOMS ? [] : [...new Set(killers.flatMap(({ engines }) => engines))];
mkdirSync(FOLDER, { recursive: true });

const quiet = { isDebugEnabled: () => false, debug() {}, info() {} };
const contents = files.map((name) => ({ name, mutate: true, content: readFileSync(name, 'utf8') }));
const options = { plugins: null, excludedMutations: [], ignorers: [] };
const instrumented = await new Instrumenter(quiet).instrument(contents, options);
const code = Object.fromEntries(instrumented.files.map(({ name, content }) => [resolve(name), content]));
const base = { tests, engines, code, coverage: `${FOLDER}/coverage.json` };
const mutants = instrumented.mutants.map(described);

await vitest('coverage', base);
const { perTest, always, durations } = JSON.parse(readFileSync(base.coverage, 'utf8'));
const killed = new Map();
const wanted = mutants.filter(({ isEquivalent }) => !isEquivalent).map(({ id }) => id);
let isOver = false;
for (const signal of ['SIGINT', 'SIGTERM'])
  process.on(signal, () => {
    if (isOver) return;
    isOver = true;
    for (let job = 0; job < JOBS; job += 1) noteKills(logOf(job));
    print();
    process.exit(1);
  });
await Promise.all(
  Array.from({ length: JOBS }, (_, job) =>
    kill(
      wanted.filter((id) => id % JOBS === job),
      job,
    ),
  ),
);
// What runs when a module is loaded needs a run of its own.
const again = wanted.filter((id) => id in always && !killed.has(id));
await Promise.all(
  Array.from({ length: JOBS }, async (_, job) => {
    for (const id of again.filter((_, index) => index % JOBS === job))
      if (!(await vitest(`always-${job}`, { ...base, durations }, { __STRYKER_ACTIVE_MUTANT__: id })))
        killed.set(id, 'k');
  }),
);
print();

/** The quick tests first: most mutants do not survive them. */
async function kill(ids, job) {
  for (const [at, limitMs] of LIMITS_MS.entries())
    await killBy(
      (test) => durations[test] > (LIMITS_MS[at - 1] ?? -1) && durations[test] <= limitMs,
      ids,
      job,
    );
}

async function killBy(isWanted, ids, job) {
  for (let isDone = false; !isDone; ) {
    const log = logOf(job);
    writeFileSync(log, '');
    const left = new Set(ids.filter((id) => !killed.has(id)));
    const wanted = Object.entries(perTest).filter(([test]) => isWanted(test));
    const todo = wanted.map(([test, hits]) => [test, Object.entries(hits).filter(([id]) => left.has(id))]);
    isDone =
      (await vitest(`kill-${job}`, { ...base, durations, log, todo: Object.fromEntries(todo) })) !== 'stuck';
    const last = noteKills(log);
    if (!isDone) killed.set(last, 't');
  }
}

/** Returns the mutant of the last attempt. */
function noteKills(log) {
  let last;
  for (const line of readFileSync(log, 'utf8').split('\n').filter(Boolean)) {
    const [what, id] = line.split(' ');
    if (what === 's') last = id;
    else if (what === 'x') killed.delete(id);
    else killed.set(id, what);
  }
  return last;
}

/** Runs the tests; resolves to whether they pass, or to `stuck`. */
async function vitest(name, job, env = {}) {
  const settings = `${FOLDER}/${name}.json`;
  writeFileSync(settings, JSON.stringify(job));
  const args = ['node_modules/vitest/vitest.mjs', 'run', '--config', 'test/mutation/vitest.config.ts'];
  const child = spawn(process.execPath, args, {
    stdio: ['ignore', process.env.VERBOSE ? 'inherit' : 'ignore', process.env.VERBOSE ? 'inherit' : 'ignore'],
    env: { ...process.env, ...env, NODELEASE_MUTATION: resolve(settings) },
  });
  let stuck = false;
  const begun = Date.now();
  const watch = setInterval(() => {
    const since =
      job.log === undefined ? begun + 90_000 : Math.max(begun + 10_000, statSync(job.log).mtimeMs);
    stuck = Date.now() - since > STUCK_MS;
    if (stuck) child.kill('SIGKILL');
  }, 1_000);
  const status = await new Promise((done) => child.once('exit', done));
  clearInterval(watch);
  if (name === 'coverage' && status !== 0) throw new Error('the tests fail without a mutant');
  return stuck && job.log !== undefined ? 'stuck' : status === 0;
}

function sourcesIn(path) {
  if (!statSync(path).isDirectory()) return /(\.test|index|\.d)\.ts$/.test(path) ? [] : [path];
  return readdirSync(path)
    .flatMap((name) => sourcesIn(join(path, name)))
    .filter((file) => file.endsWith('.ts'));
}

function described({ id, fileName, location: { start, end }, replacement }) {
  const lines = readFileSync(fileName, 'utf8').split('\n');
  const part = lines.slice(start.line, end.line + 1);
  part.push(part.pop().slice(0, end.column));
  const from = [part[0].slice(start.column), ...part.slice(1)].join('\n');
  const row = { line: lines[start.line].trim(), from, to: replacement };
  const isEquivalent = (EQUIVALENT[fileName] ?? []).some(
    ({ line, from, to }) => line === row.line && from === row.from && to === row.to,
  );
  return { id, place: `${fileName}:${start.line + 1}`, row, isEquivalent };
}

function print() {
  const tested = new Set(Object.values(perTest).flatMap((hits) => Object.keys(hits)));
  const survivors = mutants.filter(({ id, isEquivalent }) => !isEquivalent && !killed.has(id));
  for (const { id, place, row } of survivors)
    console.log(`${place}${tested.has(id) || id in always ? '' : ' (no test)'} ${JSON.stringify(row)}`);
  const timeouts = [...killed.values()].filter((what) => what === 't').length;
  const score = ((100 * killed.size) / wanted.length).toFixed(1);
  console.log(
    `${score} % of ${wanted.length} mutants killed, ${timeouts} of them endless; ${survivors.length} survive; ${mutants.length - wanted.length} are equivalent`,
  );
}
