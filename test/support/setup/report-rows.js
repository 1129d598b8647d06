// What the test runner's JSON report says, a row for each file.
import { readFileSync } from 'node:fs';
import { relative } from 'node:path';

/** @typedef {{ name: string, message: string }} Failure */

/**
 * @param {string} report the report's file
 * @returns {{ file: string, seconds: number, tests: number, passed: number, failed: Failure[] }[]} a file that could not be run has failed itself, too
 */
export function rowsOf(report) {
  return JSON.parse(readFileSync(report, 'utf8')).testResults.map(
    ({ name, status, message, startTime, endTime, assertionResults }) => {
      const file = relative(process.cwd(), name);
      const failed = assertionResults
        .filter((test) => test.status === 'failed')
        .map(({ fullName, failureMessages }) => ({ name: fullName, message: failureMessages.join('\n') }));
      if (status === 'failed' && failed.length === 0) failed.push({ name: file, message });
      const passed = assertionResults.filter((test) => test.status === 'passed').length;
      return { file, seconds: (endTime - startTime) / 1_000, tests: assertionResults.length, passed, failed };
    },
  );
}
