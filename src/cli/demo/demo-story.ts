import type { Clock } from '../../base/clock.js';
import { type ClusterStatus, inspectCluster, type NodeStatus } from '../../lease/operate/inspect.js';
import type { StoreSession } from '../../lease/session/store-session.js';
import { type LeaseChange, leaseChanges } from '../../monitor/lease-changes.js';
import { expiresInMs } from '../../monitor/status-report.js';
import { formatDuration, formatSetting } from '../terminal/text.js';
import type { DemoTask } from './demo-task.js';
import type { DemoView } from './demo-view.js';

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

/** What the demo waits for, each since a moment of the monotonic clock. */
type Phase =
  /** Until all node ids are held. */
  | { readonly kind: 'acquiring'; readonly since: number }
  /** Until the next task is killed. */
  | { readonly kind: 'calm'; readonly since: number }
  /** Until the node id of the killed task is taken over. */
  | { readonly kind: 'accident'; readonly since: number; readonly id: number; readonly version: number };

/** The tasks did not do what they should do. */
export class DemoFailure extends Error {}

/** Kills and replaces tasks of a fleet in turn, and shows what becomes of their leases, as the store tells it. */
export class DemoStory {
  /** The running tasks, in the order of their starts. */
  tasks: DemoTask[] = [];
  #nodes: readonly NodeStatus[] = [];
  #started = 0;
  #killed = 0;
  #phase: Phase;
  /** The names of the tasks that have held a node id. */
  readonly #held = new Set<string>();

  constructor(private readonly options: DemoStoryOptions) {
    this.#phase = { kind: 'acquiring', since: options.clock.monotonic() };
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
      const { kind, since } = this.#phase;
      const elapsedMs = clock.monotonic() - since;
      if (kind !== 'calm') this.#checkTimeout(elapsedMs);
      else if (once && this.#killed > 0) {
        if (elapsedMs >= SHOW_MS) return;
      } else if (this.#leftToKillMs(since) <= 0) this.#killNext();
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
    if (allHeld && this.#phase.kind === 'acquiring') this.#phase = { kind: 'calm', since: clock.monotonic() };
    view.update(status, this.#comingNext());
  }

  #tellChange(change: LeaseChange, status: ClusterStatus | undefined): void {
    const { view, clock } = this.options;
    const { nodeId: id, version, taskId } = change;
    switch (change.kind) {
      case 'acquired':
      case 'taken-over': {
        if (taskId !== null) this.#held.add(taskId);
        const phase = this.#phase;
        if (phase.kind !== 'accident' || phase.id !== id || version <= phase.version) {
          view.tell(`${taskId} acquired node id ${id} at version ${version}`, 'green');
          break;
        }
        const now = clock.monotonic();
        const took = formatDuration(now - phase.since);
        view.tell(`${taskId} took over node id ${id}: version ${phase.version} -> ${version}, ${took} after the kill`, 'green');
        this.#phase = { kind: 'calm', since: now };
        break;
      }
      case 'released':
        view.tell(`node id ${id} is released, its version ${version} is kept`);
        break;
      case 'overdue': {
        const grace = formatSetting(status?.cluster.graceMs ?? 0);
        view.tell(`the lease of node id ${id} has run out; it may be taken after ${grace} of grace`, 'yellow');
      }
    }
  }

  #start(how: string): void {
    this.#started += 1;
    const task = this.options.start(`task-${this.#started}`);
    this.tasks.push(task);
    this.options.view.tell(`${task.name} (pid ${task.pid}) ${how}`, 'dim');
  }

  get #nextToKill(): NodeStatus | undefined {
    return this.#nodes[(this.#killed + 1) % this.options.nodes];
  }

  /** Kills the task that holds the next node id in turn, and starts another one. */
  #killNext(): void {
    const { clock, view } = this.options;
    const node = this.#nextToKill;
    const victim = this.tasks.find(({ name }) => name === node?.taskId);
    if (node === undefined || victim === undefined) return;
    this.#killed += 1;
    this.tasks = this.tasks.filter((task) => task !== victim);
    victim.kill();
    this.#phase = { kind: 'accident', since: clock.monotonic(), id: node.id, version: node.version };
    const left = formatDuration(Math.max(0, expiresInMs(node) ?? 0));
    view.tell(`${victim.name} killed by SIGKILL: node id ${node.id} (version ${node.version}) expires in ${left}`, 'red');
    this.#start('started in its place: no node id is free, it waits');
  }

  /** Replaces a task that was ended from outside. One that ended before it held a lease has failed: the next one would fail, too. */
  #replaceEnded(): void {
    const { clock, view } = this.options;
    for (const task of this.tasks.filter((each) => each.end() !== undefined)) {
      this.tasks = this.tasks.filter((each) => each !== task);
      if (!this.#held.has(task.name)) throw new DemoFailure(`${task.name} ended before it held a lease (${task.end()})`);
      view.tell(`${task.name} has ended (${task.end()})`, 'red');
      if (this.#phase.kind !== 'accident') this.#phase = { kind: 'acquiring', since: clock.monotonic() };
      this.#start('started in its place');
    }
  }

  #checkTimeout(elapsedMs: number): void {
    if (elapsedMs < TIMEOUT_MS) return;
    const what = this.#phase.kind === 'accident' ? `nobody has taken over node id ${this.#phase.id}` : 'not all node ids are held';
    throw new DemoFailure(`${what} after ${formatSetting(TIMEOUT_MS)}`);
  }

  #leftToKillMs(calmSince: number): number {
    const { clock, once } = this.options;
    return calmSince + (once ? CALM_MS.once : CALM_MS.endless) - clock.monotonic();
  }

  #comingNext(): string {
    const phase = this.#phase;
    if (phase.kind === 'accident') return `Node id ${phase.id} is taken over when its lease and the grace period are over …`;
    if (phase.kind === 'acquiring') return 'The tasks acquire their node ids …';
    if (this.options.once && this.#killed > 0) return '';
    const seconds = Math.ceil(Math.max(0, this.#leftToKillMs(phase.since)) / 1_000);
    return `${this.#nextToKill?.taskId ?? 'A task'} will be killed in ${seconds} s`;
  }
}
