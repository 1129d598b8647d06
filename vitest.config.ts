import { defineConfig } from 'vitest/config';

const build = 'test/support/build-setup.ts';
const servers = 'test/support/server-setup.ts';
const containers = 'test/support/containers/container-setup.ts';
const ci = process.env.CI === 'true';

// The tests' own S3 clients need not repeat on every start that the SDK will want a newer Node one day. What is tested gets a clean environment.
process.env.AWS_SDK_JS_NODE_VERSION_SUPPORT_WARNING_DISABLED = 'true';

// The groups run one after the other: the timing-sensitive tests must not share the machine with anything else.
export default defineConfig({
  test: {
    reporters: ci ? ['default', 'json'] : ['default'],
    outputFile: { json: '.vitest-report/report.json' },
    projects: [
      {
        test: {
          name: 'unit',
          include: ['src/**/*.test.ts', 'test/simulation/**/*.test.ts', 'test/ids/**/*.test.ts'],
          testTimeout: 15_000,
          sequence: { groupOrder: 0 },
        },
      },
      {
        test: {
          name: 'contract',
          include: ['test/contract/**/*.test.ts'],
          globalSetup: [build, servers],
          testTimeout: 60_000,
          hookTimeout: 60_000,
          sequence: { groupOrder: 1 },
        },
      },
      {
        test: {
          name: 'integration',
          include: ['test/*.test.ts', 'test/support/**/*.test.ts', 'test/integration/**/*.test.ts', 'test/browser/**/*.test.ts'],
          globalSetup: [build, servers],
          testTimeout: 120_000,
          hookTimeout: 120_000,
          fileParallelism: false,
          sequence: { groupOrder: 2 },
        },
      },
      {
        test: {
          name: 'infra',
          include: ['infra/test/**/*.test.ts'],
          globalSetup: ['test/support/infra-setup.ts'],
          testTimeout: 120_000,
          hookTimeout: 120_000,
          // CDK is large: loaded once for all of them.
          isolate: false,
          fileParallelism: false,
          sequence: { groupOrder: 3 },
        },
      },
      {
        test: {
          name: 'containers',
          include: ['test/containers/**/*.test.ts'],
          globalSetup: [containers],
          testTimeout: 120_000,
          hookTimeout: 120_000,
          fileParallelism: false,
          sequence: { groupOrder: 4 },
        },
      },
      {
        test: {
          name: 'bench',
          include: ['bench/**/*.bench.ts'],
          globalSetup: [build, servers],
          testTimeout: 120_000,
          hookTimeout: 120_000,
          fileParallelism: false,
          sequence: { groupOrder: 5 },
        },
      },
    ],
  },
});
