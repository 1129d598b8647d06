import { defineConfig } from 'vitest/config';
import { isTrimmed } from './test/support/setup/tiers.js';

const harness = 'test/support/setup/harness-setup.ts';
const servers = 'test/support/setup/server-setup.ts';
const infra = 'test/support/setup/infra-setup.ts';
const containers = 'test/support/containers/container-setup.ts';

const timing = '{src,test}/**/*.timing.test.ts';
const deep = '{src,test}/**/*.deep.test.ts';
const unit = [
  'src/**/*.test.ts',
  'test/{arguments,rings}.test.ts',
  'test/{chaos,model,simulation}/**/*.test.ts',
  'test/ids/**/*.test.ts',
];
const needsInfra = 'infra/test/**/*.deep.test.ts';
const needsContainers = 'test/containers/**/*.deep.test.ts';
// Sessions of a few seconds with servers that take their time, and measured lateness: nothing else may run
// beside them.
const needsMachine =
  'test/integration/{zookeeper/discovery/zookeeper-provider,app/http/node-load,core/lease/store-fleets}.deep.test.ts';

/** The modules that they have are not those of others: each needs a worker of its own. */
const replacesModules = 'src/{core/store/file/interleavings,app/supervisor/process-group}.test.ts';

/** The files of the trimmed deep tier: of each kind of proof one. */
const proofs = [
  'test/integration/core/lease/{planted-bugs,simulation,chaos}.deep.test.ts',
  'test/integration/{core/id/id-proof,zookeeper/services/curator-interop,app/http/metrics}.deep.test.ts',
  'test/browser/demo.deep.test.ts',
  'test/model/{lease,lease-states,shards,shards-states,repair-states}.deep.test.ts',
  'test/package.deep.test.ts',
];
const deepTests = (all: string, kept: string[]) => (isTrimmed ? kept : [all]);

// The tests' own S3 clients need not repeat on every start that the SDK will want a newer Node one day. What
// is tested gets a clean environment.
process.env.AWS_SDK_JS_NODE_VERSION_SUPPORT_WARNING_DISABLED = 'true';

const report = process.env.NODELEASE_TEST_TIER ?? 'run';

/**
 * For what waits for a condition. A loaded machine may take long; what must be quick measures that itself.
 */
const expect = { poll: { timeout: 30_000 } };
/** A limit is for what hangs: the longest test takes 40 s on two cores, and others have fewer of them. */
const real = { expect, testTimeout: 300_000, hookTimeout: 300_000 };
const onServers = { ...real, globalSetup: [servers] };

// CONTRIBUTING.md says what each tier is for. The groups of a run follow each other.
export default defineConfig({
  test: {
    reporters: ['default', 'json'],
    outputFile: { json: `.vitest-report/${report}.json` },
    projects: [
      {
        test: {
          name: 'unit',
          include: unit,
          exclude: [timing, deep, replacesModules],
          expect,
          // Virtual time: how long a test takes says nothing, and its limit is for what hangs.
          testTimeout: 240_000,
          // They compute, and share nothing: no worker of its own for each file.
          isolate: false,
          maxWorkers: 2,
          sequence: { groupOrder: 0 },
        },
      },
      {
        test: {
          name: 'unit-isolated',
          include: [replacesModules],
          expect,
          testTimeout: 240_000,
          maxWorkers: 2,
          sequence: { groupOrder: 0 },
        },
      },
      {
        test: {
          ...onServers,
          name: 'integration',
          include: ['test/**/*.test.ts'],
          exclude: [timing, deep, ...unit],
          // Most of them wait for leases to expire and sessions to end, more than they compute.
          maxWorkers: 5,
          // Starting a worker and loading everything again takes longer than many a file.
          isolate: false,
          setupFiles: ['test/support/setup/end-of-file.ts'],
          sequence: { groupOrder: 1 },
        },
      },
      {
        test: {
          ...onServers,
          name: 'timing',
          include: [timing],
          fileParallelism: false,
          sequence: { groupOrder: 2 },
        },
      },
      {
        test: {
          ...onServers,
          name: 'deep',
          include: deepTests(deep, proofs),
          exclude: [needsContainers, needsMachine],
          globalSetup: [harness, servers],
          // The chaos waits, and the other proofs compute.
          maxWorkers: isTrimmed ? 3 : 2,
          sequence: { groupOrder: 3 },
        },
      },
      {
        test: {
          ...onServers,
          name: 'deep-alone',
          include: deepTests(needsMachine, []),
          fileParallelism: false,
          sequence: { groupOrder: 4 },
        },
      },
      {
        test: {
          ...real,
          name: 'infra',
          include: deepTests(needsInfra, ['infra/test/app.deep.test.ts']),
          globalSetup: [infra],
          setupFiles: ['test/support/setup/infra-folder.ts'],
          // CDK is large: loaded once for all of them.
          isolate: false,
          fileParallelism: false,
          sequence: { groupOrder: 5 },
        },
      },
      {
        test: {
          ...real,
          name: 'containers',
          include: deepTests(needsContainers, ['test/containers/image.deep.test.ts']),
          globalSetup: [containers],
          fileParallelism: false,
          sequence: { groupOrder: 6 },
        },
      },
      {
        test: {
          ...onServers,
          name: 'bench',
          include: ['bench/**/*.bench.ts'],
          // What is built runs as its users have it, without what vitest adds to each call of a module.
          server: { deps: { external: [/\/dist\//] } },
          fileParallelism: false,
          sequence: { groupOrder: 7 },
        },
      },
    ],
  },
});
