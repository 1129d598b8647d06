import { defineConfig } from 'vitest/config';
import { BaseSequencer, type TestSpecification } from 'vitest/node';
import { job } from './job.js';

/** Quick tests first: most mutants do not survive them. */
class QuickFirst extends BaseSequencer {
  override async sort(files: TestSpecification[]): Promise<TestSpecification[]> {
    const tookMs = ({ moduleId }: TestSpecification) => job.durations?.[moduleId] ?? 0;
    return files.sort((a, b) => tookMs(a) - tookMs(b));
  }
}

export default defineConfig({
  plugins: [{ name: 'mutants', enforce: 'pre', load: (id) => job.code[id] }],
  test: {
    include: [...job.tests, ...(job.engines.length > 0 ? ['test/mutation/seeds.ts'] : [])],
    runner: 'test/mutation/runner.ts',
    pool: 'threads',
    isolate: false,
    maxWorkers: 1,
    bail: job.todo === undefined ? 1 : 0,
    testTimeout: 60_000,
    sequence: { sequencer: QuickFirst },
  },
});
