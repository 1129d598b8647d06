import { appendFileSync, writeFileSync } from 'node:fs';
import type { RunnerTask, RunnerTestCase } from 'vitest';
import { TestRunner } from 'vitest';
import { job } from './job.js';

/** What Stryker's instrumented code reads and writes. */
interface Switch {
  activeMutant?: string | undefined;
  currentTestId?: string | undefined;
  hitCount?: number;
  hitLimit?: number;
  mutantCoverage?: { readonly static: object; readonly perTest: Readonly<Record<string, object>> };
}

const mutation: Switch = {};
Object.assign(globalThis, { __stryker__: mutation });
const NONE = 'none';
const durations: Record<string, number> = {};
const killed = new Set<string>();

/** Notes what each test covers; then runs each test once for each living mutant that it covers. */
export default class MutationRunner extends TestRunner {
  override async onBeforeRunTask(test: RunnerTask): Promise<void> {
    await super.onBeforeRunTask(test);
    if (job.todo === undefined) return;
    this.#todo = (job.todo[test.id] ?? []).filter(([id]) => !killed.has(id));
    this.#kills = [];
    if (this.#todo.length === 0) test.mode = 'skip';
    // The last time without a mutant: a test that fails then cannot be repeated, and kills nothing.
    else (test as RunnerTestCase).repeats = this.#todo.length;
  }

  #todo: readonly (readonly [id: string, hits: number])[] = [];
  #kills: string[] = [];
  #begun = 0;

  override onBeforeTryTask(test: RunnerTask, { repeats = 0 } = {}): void {
    super.onBeforeTryTask(test);
    this.#begun = performance.now();
    if (job.todo === undefined) {
      mutation.currentTestId = test.id;
      return;
    }
    const [id = NONE, hits = 0] = this.#todo[repeats] ?? [];
    this.#log('s', id);
    mutation.activeMutant = id;
    mutation.hitCount = 0;
    mutation.hitLimit = 1_000 + 100 * hits;
  }

  async runTask(test: RunnerTestCase): Promise<void> {
    const limitMs = job.todo === undefined ? 60_000 : 250 + 10 * (job.durations?.[test.id] ?? 0);
    let timer: NodeJS.Timeout | undefined;
    const late = new Promise((_, reject) => {
      timer = setTimeout(() => reject(new Error('too late')), limitMs);
    });
    await Promise.race([TestRunner.getTestFn(test)(), late]).finally(() => clearTimeout(timer));
  }

  onAfterRetryTask({ id, file, result }: RunnerTestCase): void {
    const tookMs = performance.now() - this.#begun;
    durations[id] = tookMs;
    durations[file.filepath] = (durations[file.filepath] ?? 0) + tookMs;
    const { activeMutant } = mutation;
    mutation.currentTestId = undefined;
    if (job.todo === undefined) return;
    mutation.activeMutant = undefined;
    if (activeMutant === undefined || result?.state !== 'fail') return;
    const isLate = result.errors?.some(({ message }) => /^too late$|Hit count limit/.test(message));
    result.state = 'run';
    result.errors = [];
    if (activeMutant !== NONE) {
      killed.add(activeMutant);
      this.#kills.push(activeMutant);
      this.#log(isLate ? 't' : 'k', activeMutant);
    } else
      for (const id of this.#kills) {
        killed.delete(id);
        this.#log('x', id);
      }
  }

  #log(what: 's' | 'k' | 't' | 'x', id: string): void {
    appendFileSync(job.log ?? '', `${what} ${id}\n`);
  }

  override onAfterRunFiles(): void {
    super.onAfterRunFiles();
    const { static: always, perTest } = mutation.mutantCoverage ?? { static: {}, perTest: {} };
    if (job.durations === undefined)
      writeFileSync(job.coverage, JSON.stringify({ always, perTest, durations }));
  }
}
