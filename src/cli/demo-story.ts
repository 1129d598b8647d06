import type { Clock } from '../clock.js';
import { type ClusterStatus, inspectCluster, type NodeStatus } from '../lease/inspect.js';
import type { StoreSession } from '../lease/store-session.js';
import { type LeaseChange, leaseChanges } from '../monitor/lease-changes.js';
import { expiresInMs } from '../monitor/status-report.js';
import type { DemoTask } from './demo-task.js';
import type { DemoView } from './demo-view.js';
import { formatDuration, formatSetting } from './text.js';

/** What the demo works with. */
export interface DemoStoryOptions {
  readonly session: StoreSession;
  readonly clock: Clock;
  readonly view: DemoView;
  /** Starts a task of that name. */
  readonly start: (name: string) => DemoTask;
  readonly nodes: number;
  /** Ends after one take-over. */
  readonly once: boolean;
}

/** How often the leases are read, in milliseconds. */
const READ_MS = 200;
/** How long all node ids are held before a task is killed, in milliseconds. */
const CALM_MS = { once: 2_500, endless: 7_500 };
/** How long the take-over stays in sight before a single run ends, in milliseconds. */
const SHOW_MS = 1_500;
/** How long the demo waits for an acquisition or a take-over, in milliseconds. */
const TIMEOUT_MS = 60_000;

/** A task was killed, and its node id is not taken over yet. */
interface Accident {
  readonly id: number;
  readonly version: number;
  readonly at: number;
}

/** The tasks did not do what they should do. */
export class DemoFailure extends Error {}

/** Kills and replaces tasks of a fleet in turn, and shows what becomes of their leases, as the store tells it. */
export class DemoStory {
  /** The running tasks, in the order of their starts. */
  tasks: DemoTask[] = [];
  #nodes: readonly NodeStatus[] = [];
  #count = 0;
  #acts = 0;
  #calmSince: number | undefined;
  #accident: Accident | undefined;
  #waitingSince: number;
  readonly #held = new Set<string>();

  constructor(private readonly options: DemoStoryOptions) {
    this.#waitingSince = options.clock.monotonic();
  }

  /**
   * Runs until the end, or until `signal` aborts.
   *
   * @throws {DemoFailure} when a task fails, or waits for a node id for a minute
   * @throws `signal.reason`
   */
  async play(signal: AbortSignal): Promise<void> {
    const { clock, nodes, once } = this.options;
    for (let index = 0; index < nodes; index += 1) this.#start('started');
    for (;;) {
      await this.#read();
      this.#replaceEnded();
      if (this.#accident !== undefined || this.#calmSince === undefined) this.#checkTimeout();
      else if (once && this.#acts > 0) {
        if (clock.monotonic() - this.#calmSince >= SHOW_MS) return;
      } else if (this.#leftToCalm() <= 0) this.#strike();
      await clock.sleep(READ_MS, signal);
    }
  }

  /** Ends all tasks, first those without a node id, which could only take over what others give back. */
  async end(): Promise<void> {
    const { view } = this.options;
    const holds = ({ name }: DemoTask) => Number(this.#held.has(name));
    const tasks = this.tasks.splice(0).sort((a, b) => holds(a) - holds(b));
    for (const { name, stopped } of tasks.map((task) => ({ name: task.name, stopped: task.stop() }))) {
      await stopped;
      view.tell(`${name} stopped`, 'dim');
      await this.#read().catch(() => undefined);
    }
  }

  /** Reads the leases, and shows what has changed since the last time. */
  async #read(): Promise<void> {
    const { session, view, clock } = this.options;
    const status = await inspectCluster(session);
    const changes = leaseChanges(this.#nodes, status?.nodes ?? []);
    this.#nodes = status?.nodes ?? [];
    for (const change of changes) this.#tellChange(change, status);
    const allHeld = status?.nodes.length === this.options.nodes && status.nodes.every(({ state }) => state === 'held');
    if (allHeld && this.#accident === undefined) this.#calmSince ??= clock.monotonic();
    view.update(status, this.#comingNext());
  }

  #tellChange(change: LeaseChange, status: ClusterStatus | undefined): void {
    const { view } = this.options;
    const { id, version } = change;
    switch (change.kind) {
      case 'acquired':
      case 'taken-over':
        this.#held.add(change.taskId);
        if (this.#accident?.id === id && version > this.#accident.version) this.#tellTakeOver(this.#accident, change.taskId, version);
        else view.tell(`${change.taskId} acquired node id ${id} at version ${version}`, 'green');
        break;
      case 'released':
        view.tell(`node id ${id} is released, its version ${version} is kept`);
        break;
      case 'overdue': {
        const grace = formatSetting(status?.cluster.graceMs ?? 0);
        view.tell(`the lease of node id ${id} has run out; it may be taken after ${grace} of grace`, 'yellow');
      }
    }
  }

  #tellTakeOver({ id, version, at }: Accident, successor: string, next: number): void {
    const { view, clock } = this.options;
    this.#accident = undefined;
    this.#calmSince = clock.monotonic();
    const took = formatDuration(clock.monotonic() - at);
    view.tell(`${successor} took over node id ${id}: version ${version} -> ${next}, ${took} after the kill`, 'green');
  }

  #start(how: string): DemoTask {
    this.#count += 1;
    const task = this.options.start(`task-${this.#count}`);
    this.tasks.push(task);
    this.options.view.tell(`${task.name} (pid ${task.pid}) ${how}`, 'dim');
    this.#waitingSince = this.options.clock.monotonic();
    return task;
  }

  /** Kills the task that holds the next node id in turn, and starts another one. */
  #strike(): void {
    const { clock, view, nodes } = this.options;
    const node = this.#nodes[(this.#acts + 1) % nodes];
    const victim = this.tasks.find(({ name }) => name === node?.taskId);
    if (node === undefined || victim === undefined) return;
    this.#acts += 1;
    this.tasks = this.tasks.filter((task) => task !== victim);
    victim.kill();
    this.#accident = { id: node.id, version: node.version, at: clock.monotonic() };
    this.#calmSince = undefined;
    const left = formatDuration(Math.max(0, expiresInMs(node) ?? 0));
    view.tell(`${victim.name} killed by SIGKILL: node id ${node.id} (version ${node.version}) expires in ${left}`, 'red');
    this.#start('started in its place: no node id is free, it waits');
  }

  /** Replaces a task that was ended from outside. One that ended before it held a lease has failed: the next one would fail, too. */
  #replaceEnded(): void {
    for (const task of this.tasks.filter((each) => each.end() !== undefined)) {
      this.tasks = this.tasks.filter((each) => each !== task);
      if (!this.#held.has(task.name)) throw new DemoFailure(`${task.name} ended before it held a lease (${task.end()})`);
      this.options.view.tell(`${task.name} has ended (${task.end()})`, 'red');
      this.#calmSince = undefined;
      this.#start('started in its place');
    }
  }

  #checkTimeout(): void {
    const { clock } = this.options;
    if (clock.monotonic() - this.#waitingSince < TIMEOUT_MS) return;
    const what = this.#accident === undefined ? 'not all node ids are held' : `nobody has taken over node id ${this.#accident.id}`;
    throw new DemoFailure(`${what} after ${formatSetting(TIMEOUT_MS)}`);
  }

  #leftToCalm(): number {
    const { clock, once } = this.options;
    return (this.#calmSince ?? clock.monotonic()) + (once ? CALM_MS.once : CALM_MS.endless) - clock.monotonic();
  }

  #comingNext(): string {
    const { nodes, once } = this.options;
    if (this.#accident !== undefined) return `Node id ${this.#accident.id} is taken over when its lease and the grace period are over …`;
    if (this.#calmSince === undefined) return 'The tasks acquire their node ids …';
    if (once && this.#acts > 0) return '';
    const next = this.#nodes[(this.#acts + 1) % nodes];
    return `${next?.taskId ?? 'A task'} will be killed in ${Math.ceil(Math.max(0, this.#leftToCalm()) / 1_000)} s`;
  }
}
