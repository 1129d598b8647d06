import { setMaxListeners } from 'node:events';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import type { RunExplanation } from '../model/merged-trace.js';
import { harnessFile } from '../support/package-root.js';
import { runCli, runProcess } from '../support/processes.js';
import { seededRandom } from '../support/virtual-clock.js';
import { monotonicMicros } from './act.js';
import type { ChaosStore } from './chaos-store.js';
import type { Findings, Glance } from './judge.js';
import { type Observer, startObserver } from './observer.js';
import { Slot, type SlotSpec, type Surroundings, type TaskEnd } from './slot.js';
import { StoreWatch } from './store-watch.js';
import { absentees, leastTenures } from './summary.js';
import { type FaultRecord, makeTrouble } from './trouble.js';

/** How a chaos run goes. */
export interface ChaosOptions {
  readonly store: ChaosStore;
  /** How long tasks are harmed, in milliseconds; setting up and ending come on top, some 15 seconds. */
  readonly lengthMs: number;
  /**
   * How much longer they are, in milliseconds, where a busy machine has not come to what a run of this length
   * has to show.
   * @default 0
   */
  readonly patienceMs?: number;
  /** What faults are drawn from. */
  readonly seed: number;
  /** How many tasks there are at a time. @default 10 */
  readonly tasks?: number;
  /** How many node ids they share. @default 5 */
  readonly ids?: number;
  /** How many shards they share; then each task is a program, and contends for a lock. @default 0 */
  readonly shards?: number;
  /**
   * The durations that an operator gives the cluster, one after the other, in milliseconds. Then no fault hits
   * every other task, which has to keep its node id. @default none
   */
  readonly tune?: readonly number[];
  /** A file that gets each act as a line. @default none */
  readonly history?: string;
  /**
   * An empty folder that gets a trace of each task: what happens to the leases must be a path of the model. Then
   * each task is a program that renews inline; other tasks open their stores themselves. @default none
   */
  readonly traces?: string;
  /** The lease's duration, in milliseconds. @default 3000 */
  readonly durationMs?: number;
  /** Called every now and then. */
  readonly onProgress?: (progress: ChaosProgress) => void;
  /** Ends the run early, in order. */
  readonly signal?: AbortSignal;
}

/** What a run has come to so far. */
export interface ChaosProgress {
  readonly elapsedMs: number;
  readonly lengthMs: number;
  readonly glance: Glance;
  readonly faults: readonly FaultRecord[];
  readonly ends: readonly TaskEnd[];
}

/** What a run came to. */
export interface ChaosResult extends Omit<ChaosProgress, 'glance'> {
  readonly findings: Findings;
  readonly specs: readonly SlotSpec[];
  readonly ids: number;
  readonly shards: number;
  /** The longest one. */
  readonly durationMs: number;
  readonly graceMs: number;
  /** The holders that have not followed the last change of the duration in time. */
  readonly late: readonly string[];
  /** The verdict of `nodelease audit` on all that was written; undefined where the store does not keep that. */
  readonly audit: { readonly code: number | null; readonly verdict: string } | undefined;
  /** What the model says of it; undefined without traces. */
  readonly explanation: RunExplanation | undefined;
  /** What was wrong with the objects in the store. */
  readonly storeProblems: readonly string[];
  /** How many times the objects in the store were read, in addition to the reads of the tasks. */
  readonly storeLooks: number;
  /** Processes that outlived their tasks, and were killed. */
  readonly leftovers: number;
}

const GRACE_MS = 1_000;
/** How much slower the faults of a fleet with shards follow each other. */
const SHARDS_PACE = 4;
const REPORT_EVERY_MS = 500;
/** How often the time is looked at, in milliseconds. */
const LOOK_EVERY_MS = 50;
/** How long tasks may take to end in order, and what was killed to be gone, in milliseconds. */
const ENDING_MS = { inOrder: 5_000, killed: 20_000 };

/**
 * Runs a fleet on a real store, harms its tasks and their connections, and has all their acts observed. The
 * built command and library have to be there, and the compiled programs of this folder.
 *
 * @throws Error when it cannot be set up; what goes wrong in the fleet is in the result
 */
export async function runChaos(options: ChaosOptions): Promise<ChaosResult> {
  const folder = await mkdtemp(join(tmpdir(), 'nodelease-chaos-'));
  let observer: Observer | undefined;
  try {
    observer = await startObserver(folder, options.history);
    return await observed(options, observer);
  } finally {
    observer?.kill();
    await rm(folder, { recursive: true, force: true });
  }
}

async function observed(options: ChaosOptions, observer: Observer): Promise<ChaosResult> {
  const { store, lengthMs, patienceMs = 0, seed, durationMs = 3_000 } = options;
  const { shards = 0, tasks = 10, ids = 5, tune = [], traces } = options;
  const longestMs = Math.max(durationMs, ...tune);
  const { url, endpoint } = store.address();
  const operator = {
    options: ['--store', url, ...(endpoint === '' ? [] : ['--endpoint', endpoint])],
    env: store.env,
  };
  await initialize(operator, ids, durationMs);

  const random = seededRandom(seed);
  const surroundings: Surroundings = { store, pipe: observer.pipe, traces };
  const slots = slotSpecs(tasks, { shards, spares: tune.length > 0, traced: traces !== undefined }).map(
    (spec) => new Slot(spec, surroundings, random),
  );
  const faults: FaultRecord[] = [];
  const watch = new StoreWatch(store.read, ids, store.goesBack);
  // Aborts when the time is up, when the caller wants it, or when something failed. Not made by
  // AbortSignal.any() of a time-out: Node 20 may collect that as garbage, and then it never aborts.
  const ended = new AbortController();
  const { signal } = ended;
  const end = () => ended.abort();
  options.signal?.addEventListener('abort', end, { once: true });
  if (options.signal?.aborted) end();
  // Every fault that lasts listens to it.
  setMaxListeners(0, signal);
  const begun = performance.now();
  const progress = (): ChaosProgress => ({
    elapsedMs: performance.now() - begun,
    lengthMs,
    glance: observer.latest(),
    faults,
    ends: slots.flatMap(({ ends }) => ends),
  });
  const leases = leastTenures({
    elapsedMs: lengthMs,
    lengthMs,
    ids,
    durationMs: longestMs,
    graceMs: GRACE_MS,
  });
  // Each shard is to change hands, and locks count as well.
  const least = leases + 3 * shards;
  const isConclusive = () => {
    const acted = slots.filter(
      ({ task, ends }) => task?.acting !== undefined || ends.some(({ taskId }) => taskId !== undefined),
    );
    const missing = absentees(
      slots.map(({ spec }) => spec),
      acted.map(({ spec }) => spec),
    );
    return observer.latest().tenures >= least && missing.length === 0;
  };
  const timer = setInterval(() => {
    const overdueMs = performance.now() - begun - lengthMs;
    if (overdueMs >= patienceMs || (overdueMs >= 0 && isConclusive())) end();
  }, LOOK_EVERY_MS);
  const reporting = setInterval(() => options.onProgress?.(progress()), REPORT_EVERY_MS);
  let late: readonly string[] = [];
  try {
    for (const slot of slots) await slot.open();
    await Promise.all([
      makeTrouble(
        {
          slots: slots.filter(({ spec }) => !spec.spared),
          random,
          durationMs,
          ids,
          operator,
          signal,
          pace: shards > 0 ? SHARDS_PACE : 1,
        },
        (fault) => faults.push(fault),
      ),
      watch.watch(signal),
      retune(tune, { operator, everyMs: lengthMs / (tune.length + 1), signal }, (fault) =>
        faults.push(fault),
      ),
      // A failure of the servers would end the tenures of spared tasks, too.
      tune.length > 0 || store.harm?.(seededRandom(seed ^ 1), signal, (fault) => faults.push(fault)),
    ]);
    late = await lateHolders(tune.at(-1), operator);
  } finally {
    end();
    options.signal?.removeEventListener('abort', end);
    clearInterval(timer);
    clearInterval(reporting);
    await Promise.all(slots.map((slot) => slot.close(ENDING_MS.inOrder)));
  }
  const leftovers = await endLeftovers(slots);
  const findings = await observer.finish();
  await watch.finish(findings.tenures.filter(({ nodeId }) => nodeId < ids));
  const { glance: _, ...facts } = progress();
  return {
    ...facts,
    audit: store.keepsHistory ? await audited(operator) : undefined,
    explanation: traces === undefined ? undefined : await explained(traces, store, faults),
    findings,
    specs: slots.map(({ spec }) => spec),
    ids,
    shards,
    durationMs: longestMs,
    graceMs: GRACE_MS,
    late,
    storeProblems: [...watch.problems],
    storeLooks: watch.looks,
    leftovers,
  };
}

/**
 * Every other one runs `nodelease run`; two of each kind have a host whose wall clock is wrong; library tasks
 * renew inline and in a worker by turns. With shards all are library tasks, with traces all of them renew inline as
 * well. Where some are spared, they are half of each kind.
 */
export function slotSpecs(
  tasks: number,
  {
    shards = 0,
    spares = false,
    traced = false,
  }: { readonly shards?: number; readonly spares?: boolean; readonly traced?: boolean } = {},
): SlotSpec[] {
  return Array.from({ length: tasks }, (_, number) => ({
    number,
    kind: shards === 0 && !traced && number % 2 === 0 ? ('run' as const) : ('library' as const),
    shards,
    spared: spares && number % 4 < 2,
    keeper: traced || number % 4 < 2 ? ('inline' as const) : ('worker' as const),
    clockHours: ([10, 10, -10, -10] as const)[number % 10] ?? (0 as const),
  }));
}

/** An operator gives the cluster one duration after the other. */
async function retune(
  durations: readonly number[],
  { operator, everyMs, signal }: { operator: Operator; everyMs: number; signal: AbortSignal },
  record: (fault: FaultRecord) => void,
): Promise<void> {
  for (const durationMs of durations) {
    await sleep(everyMs, undefined, { signal }).catch(() => undefined);
    if (signal.aborted) return;
    await tuned(durationMs, operator);
    const name = `duration of ${durationMs} ms`;
    record({ name, at: monotonicMicros(), lengthMs: 0, slot: undefined, taskId: 'of an operator' });
  }
}

async function lateHolders(durationMs: number | undefined, operator: Operator): Promise<readonly string[]> {
  if (durationMs === undefined) return [];
  const { late } = JSON.parse(await tuned(durationMs, operator));
  return late.map(({ id, durationMs: ms }: { id: number; durationMs: number }) => `${id} (${ms} ms)`);
}

async function tuned(durationMs: number, operator: Operator): Promise<string> {
  const words = ['tune', '--duration', `${durationMs}ms`, '--json', ...operator.options];
  const command = runCli(words, { env: operator.env });
  const { code } = await command.exit;
  if (code !== 0) throw new Error(`nodelease tune failed with exit code ${code}: ${command.stderr()}`);
  return command.stdout();
}

/** Options and environment with which an operator's command reaches the store. */
interface Operator {
  readonly options: readonly string[];
  readonly env: Readonly<Record<string, string>>;
}

async function audited({ options, env }: Operator) {
  const audit = runCli(['audit', '--json', ...options], { env });
  const { code } = await audit.exit;
  return { code, verdict: audit.stdout() || audit.stderr() };
}

async function explained(
  traces: string,
  store: ChaosStore,
  faults: readonly FaultRecord[],
): Promise<RunExplanation> {
  await writeFile(join(traces, 'faults'), JSON.stringify(faults));
  const { url, endpoint } = store.address();
  const program = harnessFile('test/chaos/explain-main.ts');
  const explaining = runProcess(process.execPath, [program, traces, url, endpoint], { env: store.env });
  const { code } = await explaining.exit;
  if (code !== 0) throw new Error(`the traces could not be explained: ${explaining.stderr()}`);
  return JSON.parse(explaining.stdout());
}

async function initialize(operator: Operator, ids: number, durationMs: number): Promise<void> {
  const settings = ['--nodes', String(ids), '--duration', `${durationMs}ms`, '--grace', `${GRACE_MS}ms`];
  const init = runCli(['init', ...operator.options, ...settings], { env: operator.env });
  const { code } = await init.exit;
  if (code !== 0) throw new Error(`nodelease init failed with exit code ${code}: ${init.stderr()}`);
}

/**
 * The processes of tasks that ended are to end with them, at the hand of a guard. How many did not, in good
 * time.
 */
async function endLeftovers(slots: readonly Slot[]): Promise<number> {
  const deadline = performance.now() + ENDING_MS.killed;
  const leftovers = () => slots.flatMap((slot) => slot.leftovers);
  while (leftovers().length > 0 && performance.now() < deadline) await sleep(50);
  const left = leftovers();
  for (const process of left) process.signal('SIGKILL');
  return left.length;
}
