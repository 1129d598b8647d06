import { setTimeout as sleep } from 'node:timers/promises';
import type { RandomSource } from '../../src/core/base/clock.js';
import { FaultProxy } from '../support/network/fault-proxy.js';
import { type ProxyFaults, together } from '../support/network/proxies.js';
import { harnessFile } from '../support/package-root.js';
import { childHandles, ProcessHandle } from '../support/process-handle.js';
import { type ProcessEnd, runCli, runProcess, type TestProcess } from '../support/processes.js';
import { faketimeEnvironment, removeTraces } from '../support/programs/faketime.js';
import type { ActorKind } from './act.js';
import { ACTING, type Acting, readActing } from './actor.js';
import type { ChaosStore, StoreAddress } from './chaos-store.js';

/** What the tasks of a slot are. */
export interface SlotSpec {
  readonly number: number;
  readonly kind: ActorKind;
  /** Where a library task renews its lease; of no meaning for `run`. */
  readonly keeper: 'inline' | 'worker';
  /** How many shards its tasks share, each of them with a lock as well; 0 for node ids alone. */
  readonly shards: number;
  /** Whether no fault hits its tasks. */
  readonly spared: boolean;
  /** How far the wall clock of its host is off, in hours. */
  readonly clockHours: 0 | 10 | -10;
}

/** Where the tasks find their store and their observer. */
export interface Surroundings {
  readonly store: ChaosStore;
  readonly pipe: string;
  /** The folder in which each task leaves its trace. */
  readonly traces?: string | undefined;
}

/** A task that runs, as far as it can be signalled. */
export interface Task {
  readonly spec: SlotSpec;
  /** The supervisor of `nodelease run`, or the program that uses the library. */
  readonly main: ProcessHandle;
  /** What it said when it began to act; undefined until then. */
  acting: Acting | undefined;
  /** The command of `nodelease run`, once it acts. */
  child: ProcessHandle | undefined;
  /** What would end that command if its supervisor could not. */
  guard: ProcessHandle | undefined;
}

/** How a task ended. */
export interface TaskEnd extends ProcessEnd {
  readonly spec: SlotSpec;
  /** What the id had been when the task took it; undefined when it never had one. */
  readonly from: string | undefined;
  /** Undefined for a task that never acted. */
  readonly taskId: string | undefined;
  /** The end of its log. */
  readonly log: string;
}

/** How long a slot waits before it starts its next task, in milliseconds, at the most. */
const RESTART_MS = 300;
/**
 * How long a task waits for a node id, in milliseconds: should this process be killed, its tasks are not to
 * wait for ever.
 */
const ACQUIRE_TIMEOUT_MS = 60_000;
/** How much of a task's log is kept, in characters. */
const LOG_KEPT = 4_000;

/**
 * One place of a fleet, with a network path of its own to the store: a task runs in it, and whenever it ends
 * the next one is started.
 */
export class Slot {
  /** Its network: the proxies before all servers. */
  readonly proxy: ProxyFaults;
  readonly ends: TaskEnd[] = [];
  /** Every process seen in it, dead or alive. */
  readonly processes: ProcessHandle[] = [];
  task: Task | undefined;
  readonly #proxies: readonly FaultProxy[];
  #running: TestProcess | undefined;
  #closing = false;
  #loop: Promise<void> = Promise.resolve();

  constructor(
    readonly spec: SlotSpec,
    private readonly surroundings: Surroundings,
    private readonly random: RandomSource,
  ) {
    this.#proxies = surroundings.store.servers.map(() => new FaultProxy());
    this.proxy = together(this.#proxies);
  }

  /** Starts the proxies and the first task. */
  async open(): Promise<void> {
    const { store } = this.surroundings;
    const ports = await Promise.all(
      store.servers.map(({ hostname, port }, index) => this.#proxies[index]?.start(hostname, port) ?? 0),
    );
    const { clockHours } = this.spec;
    const clock =
      clockHours === 0
        ? {}
        : await faketimeEnvironment(`${clockHours > 0 ? '+' : '-'}${Math.abs(clockHours)}h`);
    this.#loop = this.#keepRunning(store.address(ports), { ...store.env, ...clock });
  }

  /**
   * Lets the task end in order, as far as it does so within `patienceMs` milliseconds, and starts no further
   * one.
   */
  async close(patienceMs: number): Promise<void> {
    this.#closing = true;
    this.proxy.heal();
    this.#everyProcess('SIGCONT');
    this.#running?.kill('SIGTERM');
    await Promise.race([this.#loop, sleep(patienceMs, undefined, { ref: false })]);
    this.#running?.kill('SIGKILL');
    await this.#loop;
    await Promise.all(this.#proxies.map((proxy) => proxy.stop()));
    if (this.spec.clockHours !== 0) for (const { pid } of this.processes) await removeTraces(pid);
  }

  /** Processes of its tasks that are still there. */
  get leftovers(): ProcessHandle[] {
    return this.processes.filter((process) => process.isAlive());
  }

  async #keepRunning(store: StoreAddress, env: Record<string, string>): Promise<void> {
    while (!this.#closing) {
      const running = this.#start(store, env);
      this.#running = running;
      const task: Task = {
        spec: this.spec,
        main: this.#seen(running.pid),
        acting: undefined,
        child: undefined,
        guard: undefined,
      };
      this.task = task;
      void this.#awaitActing(task, running);
      const end = await running.exit;
      this.task = undefined;
      const log = running.stderr();
      this.ends.push({
        ...end,
        spec: this.spec,
        from: /"from":"(\w+)"/.exec(log)?.[1],
        taskId: task.acting?.taskId,
        log: log.slice(-LOG_KEPT),
      });
      if (!this.#closing) await sleep(this.random.next() * RESTART_MS);
    }
  }

  #start({ url, endpoint }: StoreAddress, env: Record<string, string>): TestProcess {
    const { pipe, traces = '' } = this.surroundings;
    if (this.spec.kind === 'run') {
      const command = [process.execPath, harnessFile('test/chaos/run-actor.ts'), pipe];
      const settings = [
        '--store',
        url,
        ...(endpoint === '' ? [] : ['--endpoint', endpoint]),
        '--acquire-timeout',
        `${ACQUIRE_TIMEOUT_MS}ms`,
      ];
      return runCli(['run', ...settings, '--', ...command], { env });
    }
    const { keeper, shards } = this.spec;
    const program = harnessFile('test/chaos/library-actor.ts');
    return runProcess(
      process.execPath,
      [program, pipe, url, endpoint, keeper, `${ACQUIRE_TIMEOUT_MS}`, `${shards}`, traces],
      { env },
    );
  }

  async #awaitActing(task: Task, running: TestProcess): Promise<void> {
    // A task that ends before it acts is reported by its end.
    const said = await running.waitForOutput(ACTING, 2 ** 31 - 1).catch(() => undefined);
    if (said === undefined) return;
    task.acting = readActing(said);
    if (this.spec.kind !== 'run') return;
    task.child = this.#seen(task.acting.pid);
    const guard = childHandles(task.main.pid).find(({ pid }) => pid !== task.acting?.pid);
    task.guard = guard && this.#seen(guard.pid);
  }

  #seen(pid: number): ProcessHandle {
    const handle = new ProcessHandle(pid);
    this.processes.push(handle);
    return handle;
  }

  #everyProcess(signal: NodeJS.Signals): void {
    for (const process of this.processes) process.signal(signal);
  }
}
