import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { describe, expect, inject, it } from 'vitest';
import { awsEnvironment } from '../../../support/bucket.js';
import { installed } from '../../../support/installed.js';
import { packageRoot } from '../../../support/package-root.js';
import { runProcess } from '../../../support/processes.js';

/**
 * What is run on each version: all unit tests, every store's contract, and the command on real servers. Parts
 * of the paths of test files.
 */
const CORE = [
  'src/',
  'test/contract/',
  'test/simulation/',
  'run-command',
  'command-bundle',
  'id-command',
  'status-command',
  'discovery-tree',
  'worker-keeper',
];
const LIMIT_MS = 1_800_000;

describe.each([22, 24, 26])('Node.js %i', (major) => {
  it('passes the core tests, with the command and all programs on it', {
    timeout: LIMIT_MS + 120_000,
  }, async () => {
    const node = await installed('install-node.sh', [String(major)], 'install npm');
    const s3 = inject('s3');
    const tier = `node-${major}`;
    const env = {
      ...awsEnvironment(s3),
      NODELEASE_TEST_S3_ENDPOINT: s3.endpoint,
      NODELEASE_TEST_ZOOKEEPER: inject('zookeeper').connect,
      NODELEASE_TEST_TIER: tier,
      NODELEASE_TEST_BUILT: 'yes',
      ...{ VITEST: '', VITEST_POOL_ID: '', VITEST_WORKER_ID: '', VITEST_MODE: '', NODE_ENV: '' },
    };
    const vitest = join(packageRoot, 'node_modules/vitest/vitest.mjs');
    const run = runProcess(node, [vitest, 'run', '--project', 'unit*', '--project', 'integration', ...CORE], {
      env,
    });
    const { code } = await run.exit;
    expect(code, `${run.stdout().slice(-20_000)}${run.stderr().slice(-5_000)}`).toBe(0);
    const report = JSON.parse(await readFile(join(packageRoot, `.vitest-report/${tier}.json`), 'utf8')) as {
      numPassedTests: number;
    };
    expect(report.numPassedTests).toBeGreaterThan(2_000);
  });
});
