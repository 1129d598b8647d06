// What the test runner's own reports say. Each run of a tier leaves one in .vitest-report/.
//   node test/support/setup/reports.js slowest [COUNT]    the slowest files of the last run, in seconds
//   node test/support/setup/reports.js summary FILE…      what failed, then "N passed, N failed" over these reports; exit code 1 unless all is well
import { existsSync, readdirSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { rowsOf } from './report-rows.js';

const FOLDER = '.vitest-report';

function slowest(count) {
  const files = existsSync(FOLDER) ? readdirSync(FOLDER).filter((name) => name.endsWith('.json')) : [];
  const [last] = files
    .map((name) => join(FOLDER, name))
    .sort((a, b) => statSync(b).mtimeMs - statSync(a).mtimeMs);
  if (last === undefined) throw new Error(`no report in ${FOLDER}: run some tests first`);
  const rows = rowsOf(last).sort((a, b) => b.seconds - a.seconds);
  const total = rows.reduce((sum, { seconds }) => sum + seconds, 0);
  console.log(`${last}: ${rows.length} files, ${total.toFixed(0)} s of tests\n`);
  for (const { file, seconds, tests } of rows.slice(0, count)) {
    console.log(`${seconds.toFixed(1).padStart(7)} s  ${String(tests).padStart(4)} tests  ${file}`);
  }
}

/** Counts as failed, in addition to failed tests, every file that could not be run and every run that did not get as far as its report. */
function summary(files) {
  let passed = 0;
  let failed = 0;
  for (const file of files) {
    if (!existsSync(file)) {
      console.log(`FAILED ${file}: no such report`);
      failed += 1;
      continue;
    }
    const rows = rowsOf(file);
    const failures = rows.flatMap((row) => row.failed);
    for (const { name, message } of failures) console.log(`FAILED ${name}\n${message}`);
    passed += rows.reduce((sum, row) => sum + row.passed, 0);
    failed += failures.length;
  }
  console.log(`${passed} passed, ${failed} failed`);
  if (failed > 0 || passed === 0) process.exitCode = 1;
}

const [command, ...args] = process.argv.slice(2);
if (command === 'slowest') {
  const count = Number(args[0] ?? 25);
  if (!Number.isInteger(count) || count < 1)
    throw new Error(`number of files: expected a whole number from 1, got ${args[0]}`);
  slowest(count);
} else if (command === 'summary') summary(args);
else throw new Error(`expected slowest or summary, got ${command}`);
