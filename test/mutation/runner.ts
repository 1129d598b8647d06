import { appendFileSync, writeFileSync } from 'node:fs';
import { performance } from 'node:perf_hooks';
import type { RunnerTask, RunnerTestCase } from 'vitest';
import { TestRunner } from 'vitest';
import { job } from './job.js';

/** What Stryker's instrumented code reads and writes. */
interface Switch {
  activeMutant?: string | undefined;
  currentTestId?: string | undefined;
  hitCount?: number;
  hitLimit?: number;
  mutantCoverage?: { readonly static: object; readonly perTest: Record<string, object> };
}

const mutation: Switch = {};
Object.assign(globalThis, { __stryker__: mutation });
const durations: Record<string, number> = {};
const killed = new Set<string>();

/** Notes what each test covers; then runs each test once for each living mutant that it covers. */
export default class MutationRunner extends TestRunner {
  #todo: readonly (readonly [id: string, hits: number])[] = [];
  #begun = 0;
  /** Whether it has failed, with a mutant or without. */
  #isBroken = false;

  override async onBeforeRunTask(test: RunnerTask): Promise<void> {
    await super.onBeforeRunTask(test);
    this.#isBroken = false;
    this.#todo = (job.todo?.[test.id] ?? []).filter(([id]) => !killed.has(id));
    const isLong = (job.durations?.[test.id] ?? 0) > (job.longestMs ?? Number.POSITIVE_INFINITY);
    if (isLong || (job.todo !== undefined && this.#todo.length === 0)) test.mode = 'skip';
    // To see what it covers, twice: a test that cannot be repeated kills nothing.
    (test as RunnerTestCase).repeats = job.durations === undefined ? 1 : Math.max(0, this.#todo.length - 1);
  }

  override onBeforeTryTask(test: RunnerTask, { repeats = 0 } = {}): void {
    super.onBeforeTryTask(test);
    this.#begun = spentMs();
    const [id, hits = 0] = this.#todo[repeats] ?? [];
    if (id === undefined) {
      mutation.currentTestId = repeats === 0 ? test.id : undefined;
      return;
    }
    this.#log('s', id);
    mutation.activeMutant = id;
    mutation.hitCount = 0;
    mutation.hitLimit = 1_000 + 100 * hits;
  }

  async runTask(test: RunnerTestCase): Promise<void> {
    const limitMs =
      job.durations === undefined
        ? 60_000
        : (job.todo === undefined ? 5_000 : 500) + 10 * (job.durations[test.id] ?? 0);
    let timer: NodeJS.Timeout | undefined;
    const begunMs = spentMs();
    const late = new Promise((_, reject) => {
      const judge = () => {
        const leftMs = limitMs - (spentMs() - begunMs);
        if (leftMs <= 0) reject(new Error('too late'));
        else timer = setTimeout(judge, leftMs);
      };
      judge();
    });
    await Promise.race([TestRunner.getTestFn(test)(), late]).finally(() => clearTimeout(timer));
  }

  async onAfterRetryTask(test: RunnerTestCase, { repeats }: { repeats: number }): Promise<void> {
    const { id, file, result } = test;
    mutation.activeMutant = undefined;
    durations[id] = spentMs() - this.#begun;
    durations[file.filepath] = (durations[file.filepath] ?? 0) + durations[id];
    const [mutant] = this.#todo[repeats] ?? [];
    if (result?.state !== 'fail') return;
    const isBroken = this.#isBroken;
    this.#isBroken = true;
    if (mutant === undefined && (repeats === 0 || isBroken)) return;
    const isLate = result.errors?.some(({ message }) => /^too late$|Hit count limit/.test(message));
    Object.assign(result, { state: 'run', errors: [] });
    if (mutant === undefined) {
      delete mutation.mutantCoverage?.perTest[id];
      return;
    }
    killed.add(mutant);
    this.#log(isLate ? 't' : 'k', mutant);
    // What it has left running would slow down the next ones.
    if (isLate && (await isBusy())) process.kill(process.pid, 'SIGKILL');
  }

  override onAfterRunFiles(): void {
    super.onAfterRunFiles();
    const { static: always, perTest } = mutation.mutantCoverage ?? { static: {}, perTest: {} };
    if (job.durations === undefined)
      writeFileSync(job.coverage, JSON.stringify({ always, perTest, durations }));
  }

  #log(what: 's' | 'k' | 't', id: string): void {
    appendFileSync(job.log ?? '', `${what} ${id}\n`);
  }
}

/** Time that it has waited or worked. The time of other processes on the same processor does not count. */
function spentMs(): number {
  const { user, system } = process.cpuUsage();
  return idleMs() + (user + system) / 1_000;
}

function idleMs(): number {
  return performance.eventLoopUtilization().idle;
}

async function isBusy(): Promise<boolean> {
  const [idleBefore, spentBefore] = [idleMs(), spentMs()];
  await new Promise((resolve) => setTimeout(resolve, 30));
  return idleMs() - idleBefore < 0.8 * (spentMs() - spentBefore);
}
