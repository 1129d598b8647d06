import type { Clock } from '../clock.js';
import { type ClusterStatus, inspectCluster, type NodeStatus } from '../lease/inspect.js';
import type { StoreSession } from '../lease/store-session.js';
import { type LeaseChange, leaseChanges } from '../monitor/lease-changes.js';
import { expiresInMs } from '../monitor/status-report.js';
import type { DemoTask } from './demo-task.js';
import type { DemoView } from './demo-view.js';
import { formatDuration, formatSetting } from './text.js';

/** What the demo is played with. */
export interface DemoStoryOptions {
  readonly session: StoreSession;
  readonly clock: Clock;
  readonly view: DemoView;
  /** Starts a task of that name. */
  readonly start: (name: string) => DemoTask;
  readonly nodes: number;
  /** Ends after one take-over, or when that does not come. */
  readonly once: boolean;
}

/** From one look at the leases to the next, in milliseconds. */
const LOOK_MS = 200;
/** How long everything is calm before a task is killed, in milliseconds; less where it is only once. */
const CALM_MS = { once: 2_500, endless: 7_500 };
/** How long the take-over stays in sight before a single run ends, in milliseconds. */
const SHOW_MS = 1_500;
/** How long the demo waits for what has to happen, in milliseconds. */
const PATIENCE_MS = 60_000;

/** An accident that was staged. */
interface Accident {
  readonly id: number;
  readonly version: number;
  readonly at: number;
}

/** The tasks did not do what they should. */
export class DemoFailure extends Error {}

/** Plays a fleet whose tasks are killed and replaced, and tells what becomes of their leases, as the store shows it. */
export class DemoStory {
  /** All tasks, in the order in which they were started; the ended ones are removed. */
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
   * Plays until it is over, or until `signal` aborts.
   *
   * @throws {DemoFailure} when a task fails, or nothing happens for a minute
   * @throws `signal.reason`
   */
  async play(signal: AbortSignal): Promise<void> {
    const { clock, nodes, once } = this.options;
    for (let index = 0; index < nodes; index += 1) this.#start('started');
    for (;;) {
      await this.#look();
      this.#replaceEnded();
      if (this.#accident !== undefined || this.#calmSince === undefined) this.#checkPatience();
      else if (once && this.#acts > 0) {
        if (clock.monotonic() - this.#calmSince >= SHOW_MS) return;
      } else if (this.#leftToCalm() <= 0) this.#strike();
      await clock.sleep(LOOK_MS, signal);
    }
  }

  /** Ends the tasks one after the other, first those that would only take what others give back; killed instead of asked once `hurry` aborts. */
  async end(hurry: AbortSignal): Promise<void> {
    const { view } = this.options;
    const tasks = this.tasks.splice(0);
    const holds = ({ name }: DemoTask) => this.#held.has(name);
    for (const task of [...tasks.filter((each) => !holds(each)), ...tasks.filter(holds)]) {
      await task.stop(hurry);
      view.tell(`${task.name} stopped`, 'dim');
      await this.#look().catch(() => undefined);
    }
  }

  /** Reads the leases, and tells what has changed since the last time. */
  async #look(): Promise<void> {
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

  /** A task that held a lease and ended was ended by somebody, and is replaced; one that never got that far will not do so the next time. */
  #replaceEnded(): void {
    for (const task of this.tasks.filter((each) => each.end() !== undefined)) {
      this.tasks = this.tasks.filter((each) => each !== task);
      if (!this.#held.has(task.name)) throw new DemoFailure(`${task.name} ended before it held a lease (${task.end()})`);
      this.options.view.tell(`${task.name} has ended (${task.end()})`, 'red');
      this.#calmSince = undefined;
      this.#start('started in its place');
    }
  }

  #checkPatience(): void {
    const { clock } = this.options;
    if (clock.monotonic() - this.#waitingSince < PATIENCE_MS) return;
    const what = this.#accident === undefined ? 'not all node ids are held' : `nobody has taken over node id ${this.#accident.id}`;
    throw new DemoFailure(`${what} after ${formatSetting(PATIENCE_MS)}`);
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
