// Runs test files over and over on a machine that is never quiet, and says which fail by chance.
//   npm run test:stress [-- FILES] [--rounds N]    all files of the integration project unless some are named; ten rounds
// During each round two processes compute without end, and now and then one of the run's servers is stopped for 200 ms.
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, readFileSync, rmSync } from 'node:fs';
import { parseArgs } from 'node:util';
import { rowsOf } from './report-rows.js';

const REPORT = '.vitest-report/stress.json';
const BUSY_LOOPS = 2;
const STOP_MS = 200;
/** At random, 1 to 3 seconds: often enough that most tests meet a stop. */
const pauseMs = () => 1_000 + Math.random() * 2_000;

const { values, positionals: files } = parseArgs({
  allowPositionals: true,
  options: { rounds: { type: 'string', default: '10' } },
});
const rounds = Number(values.rounds);
if (!Number.isInteger(rounds) || rounds < 1)
  throw new Error(`--rounds: expected a whole number from 1, got ${values.rounds}`);

const loops = Array.from({ length: BUSY_LOOPS }, () =>
  spawn(process.execPath, ['-e', 'for (;;);'], { stdio: 'ignore' }),
);
// It ends when the last round has.
for (const loop of loops) loop.unref();
/** The run of this round. */
let vitest;
process.once('exit', () => {
  vitest?.kill();
  for (const loop of loops) loop.kill('SIGKILL');
});
for (const signal of ['SIGINT', 'SIGTERM']) process.once(signal, () => process.exit(1));

const table = new Map();
const failures = new Map();
let stops = 0;
for (let round = 1; round <= rounds; round += 1) {
  console.log(`\n== Round ${round} of ${rounds}`);
  await run();
}
print();

async function run() {
  rmSync(REPORT, { force: true });
  const chosen = files.length > 0 ? files : ['--project', 'integration'];
  const reporters = ['--reporter=dot', '--reporter=json', `--outputFile.json=${REPORT}`];
  vitest = spawn(process.execPath, ['node_modules/vitest/vitest.mjs', 'run', ...chosen, ...reporters], {
    stdio: ['ignore', 'inherit', 'inherit'],
  });
  const ended = once(vitest, 'exit');
  let timer = setTimeout(stop, pauseMs());
  function stop() {
    const servers = serversOf(vitest.pid);
    const server = servers[Math.floor(Math.random() * servers.length)];
    if (signal(server, 'SIGSTOP')) stops += 1;
    timer = setTimeout(() => {
      signal(server, 'SIGCONT');
      timer = setTimeout(stop, pauseMs());
    }, STOP_MS);
  }
  const [code] = await ended;
  clearTimeout(timer);
  const rows = existsSync(REPORT) ? rowsOf(REPORT) : [];
  for (const { file, seconds, failed } of rows) {
    const row = table.get(file) ?? { runs: 0, failures: 0, min: Number.POSITIVE_INFINITY, max: 0 };
    table.set(file, {
      runs: row.runs + 1,
      failures: row.failures + (failed.length > 0 ? 1 : 0),
      min: Math.min(row.min, seconds),
      max: Math.max(row.max, seconds),
    });
    for (const { name, message } of failed) note(`${file}: ${name}`, message);
  }
  if (code !== 0 && !rows.some(({ failed }) => failed.length > 0))
    note('a run as a whole', `exit code ${code}, and no failed test`);
}

/** The servers that set-up has started for all workers: they lead sessions of their own. No test stops them itself. */
function serversOf(pid) {
  const children = readFileSync(`/proc/${pid}/task/${pid}/children`, 'utf8').split(' ').filter(Boolean);
  return children.filter((child) => {
    try {
      const stat = readFileSync(`/proc/${child}/stat`, 'utf8');
      const name = stat.slice(stat.indexOf('(') + 1, stat.lastIndexOf(')'));
      const [, , , session] = stat.slice(stat.lastIndexOf(')') + 2).split(' ');
      return session === child && name !== 'sh';
    } catch {
      return false;
    }
  });
}

/** False where there is no such process, or none any more. */
function signal(pid, name) {
  try {
    return pid !== undefined && process.kill(Number(pid), name);
  } catch {
    return false;
  }
}

function note(what, message) {
  const seen = failures.get(what) ?? { times: 0, message };
  failures.set(what, { ...seen, times: seen.times + 1 });
}

function print() {
  console.log(
    `\n${'runs'.padStart(5)} ${'failures'.padStart(9)} ${'min s'.padStart(7)} ${'max s'.padStart(7)}  file`,
  );
  const rows = [...table].sort(([, a], [, b]) => b.failures - a.failures || b.max - a.max);
  for (const [file, { runs, failures: failed, min, max }] of rows) {
    console.log(
      `${String(runs).padStart(5)} ${String(failed).padStart(9)} ${min.toFixed(1).padStart(7)} ${max.toFixed(1).padStart(7)}  ${file}`,
    );
  }
  for (const [what, { times, message }] of failures)
    console.log(`\nFAILED ${times} of ${rounds} times: ${what}\n${message}`);
  const failed = rows.filter(([, row]) => row.failures > 0).length;
  console.log(
    `\n${rows.length} files, ${rounds} rounds, ${stops} stops of servers: ${failed} of the files failed at least once`,
  );
  process.exitCode = failures.size > 0 || rows.length === 0 ? 1 : 0;
}
