import type { Clock } from '../../../core/base/clock.js';
import { type ClusterStatus, inspectCluster, type NodeStatus } from '../../../core/lease/operate/inspect.js';
import type { StoreSession } from '../../../core/lease/session/store-session.js';
import { type LeaseChange, leaseChanges } from '../../../node/monitor/lease-changes.js';
import { expiresInMs } from '../../../node/monitor/status-report.js';
import { formatDuration, formatSetting } from '../../kit/terminal/text.js';
import type { DemoView } from './demo-view.js';

/** One task of the demo: a process `nodelease run`, and its command. */
export interface DemoTask {
  readonly name: string;
  /** 0 when it could not be started. */
  readonly pid: number;
  /** How it ended, for people; undefined while it runs. */
  end(): string | undefined;
  /** Ends it at once, as an accident would: it releases nothing. */
  kill(): void;
  /**
   * Asks it to end, and resolves when it has: its lease is released then. Kills it when that takes too long.
   */
  stop(): Promise<void>;
}

interface DemoStoryOptions {
  readonly session: StoreSession;
  readonly clock: Clock;
  readonly view: DemoView;
  /** Starts a task of that name. */
  readonly start: (name: string) => DemoTask;
  /** Ends after one take-over. */
  readonly once: boolean;
}

/** How many tasks there are, and node ids. */
export const NODES = 3;
/** How often the leases are read, in milliseconds. */
const READ_MS = 200;
/** How long all node ids are held before a task is killed, in milliseconds. */
const CALM_MS = { once: 2_500, endless: 7_500 };
/** How long the take-over stays in sight before a single run ends, in milliseconds. */
const SHOW_MS = 1_500;
/** How long the demo waits for an acquisition or a take-over, in milliseconds. */
const TIMEOUT_MS = 60_000;

/** The tasks did not do what they should do. */
export class DemoFailure extends Error {}

/**
 * Kills and replaces tasks of a fleet in turn, and shows what becomes of their leases, as the store shows it.
 */
export class DemoStory {
  /** The running tasks, in the order of their starts. */
  #tasks: DemoTask[] = [];
  #nodes: readonly NodeStatus[] = [];
  #started = 0;
  #killed = 0;
  /** The node id of the killed task, until another one has taken it over. */
  #accident: { readonly at: number; readonly id: number; readonly version: number } | undefined;
  /** The names of the tasks that have held a node id. */
  readonly #held = new Set<string>();

  constructor(private readonly options: DemoStoryOptions) {}

  /**
   * Runs until the end.
   * @throws {DemoFailure} when a task fails, or waits for a node id for a minute, `signal.reason` when that
   * aborts
   */
  async play(signal: AbortSignal): Promise<void> {
    const { clock, once } = this.options;
    for (let index = 0; index < NODES; index += 1) this.#start('started');
    const isPast = (at: number) => () => clock.monotonic() >= at;
    const allHeld = () => this.#nodes.length === NODES && this.#nodes.every(({ state }) => state === 'held');
    for (;;) {
      await this.#watch(
        allHeld,
        () => 'The tasks acquire their node ids …',
        signal,
        'not all node ids are held',
      );
      const killAt = clock.monotonic() + (once ? CALM_MS.once : CALM_MS.endless);
      const left = () => Math.ceil(Math.max(0, killAt - clock.monotonic()) / 1_000);
      const killing = () => `${this.#nextToKill?.taskId ?? 'A task'} will be killed in ${left()} s`;
      await this.#watch(isPast(killAt), killing, signal);
      const id = this.#killNext();
      if (id === undefined) continue;
      const takeOver = () => `Node id ${id} is taken over when its lease and the grace period are over …`;
      await this.#watch(
        () => this.#accident === undefined,
        takeOver,
        signal,
        `no task has taken over node id ${id}`,
      );
      if (once) return this.#watch(isPast(clock.monotonic() + SHOW_MS), () => '', signal);
    }
  }

  /** Ends all tasks, first those without a node id, which could only take over what others release. */
  async end(): Promise<void> {
    const { view } = this.options;
    const holds = ({ name }: DemoTask) => Number(this.#held.has(name));
    const tasks = this.#tasks.splice(0).sort((a, b) => holds(a) - holds(b));
    for (const { name, stopped } of tasks.map((task) => ({ name: task.name, stopped: task.stop() }))) {
      await stopped;
      view.say(`${name} stopped`, 'dim');
      await this.#read('').catch(() => undefined);
    }
  }

  /**
   * Shows what happens until `isDone`, and replaces the tasks that end.
   *
   * @param next what is going to happen
   * @param late what has not happened when it takes more than a minute
   */
  async #watch(isDone: () => boolean, next: () => string, signal: AbortSignal, late?: string) {
    const { clock } = this.options;
    const begun = clock.monotonic();
    for (;;) {
      await this.#read(next());
      this.#replaceEnded();
      if (isDone()) return;
      if (late && clock.monotonic() - begun >= TIMEOUT_MS)
        throw new DemoFailure(`${late} after ${formatSetting(TIMEOUT_MS)}`);
      await clock.sleep(READ_MS, signal);
    }
  }

  /** Reads the leases, and shows what has changed since the last time. */
  async #read(next: string) {
    const { session, view } = this.options;
    const status = await inspectCluster(session);
    const changes = leaseChanges(this.#nodes, status?.nodes ?? []);
    this.#nodes = status?.nodes ?? [];
    for (const change of changes) this.#showChange(change, status);
    view.update(status, next);
  }

  #showChange(change: LeaseChange, status: ClusterStatus | undefined) {
    const { view, clock } = this.options;
    const { nodeId: id, version, taskId } = change;
    if (change.kind === 'released') view.say(`node id ${id} is released, its version ${version} is kept`);
    else if (change.kind === 'overdue') {
      const grace = formatSetting(status?.cluster.graceMs ?? 0);
      view.say(`the lease of node id ${id} has run out; it may be taken after ${grace} of grace`, 'yellow');
    } else if (change.kind === 'acquired' || change.kind === 'taken-over') {
      const accident = this.#accident;
      if (taskId !== null) this.#held.add(taskId);
      if (accident?.id === id && version > accident.version) {
        const took = formatDuration(clock.monotonic() - accident.at);
        view.say(
          `${taskId} took over node id ${id}: version ${accident.version} -> ${version}, ${took} after the kill`,
          'green',
        );
        this.#accident = undefined;
      } else view.say(`${taskId} acquired node id ${id} at version ${version}`, 'green');
    }
  }

  #start(how: string) {
    this.#started += 1;
    const task = this.options.start(`task-${this.#started}`);
    this.#tasks.push(task);
    this.options.view.say(`${task.name} (pid ${task.pid}) ${how}`, 'dim');
  }

  get #nextToKill(): NodeStatus | undefined {
    return this.#nodes[(this.#killed + 1) % NODES];
  }

  /**
   * Kills the task that holds the next node id in turn, and starts another one. The node id; undefined where
   * no task holds it.
   */
  #killNext(): number | undefined {
    const { clock, view } = this.options;
    const node = this.#nextToKill;
    const victim = this.#tasks.find(({ name }) => name === node?.taskId);
    if (node === undefined || victim === undefined) return undefined;
    this.#killed += 1;
    this.#tasks = this.#tasks.filter((task) => task !== victim);
    victim.kill();
    this.#accident = { at: clock.monotonic(), id: node.id, version: node.version };
    const left = formatDuration(Math.max(0, expiresInMs(node) ?? 0));
    view.say(
      `${victim.name} killed by SIGKILL: node id ${node.id} (version ${node.version}) expires in ${left}`,
      'red',
    );
    this.#start('started in its place: no node id is free, it waits');
    return node.id;
  }

  /**
   * Replaces a task that was ended from outside. One that ended before it held a lease has failed: the next
   * one would fail, too.
   */
  #replaceEnded() {
    for (const task of this.#tasks.filter((each) => each.end() !== undefined)) {
      this.#tasks = this.#tasks.filter((each) => each !== task);
      if (!this.#held.has(task.name))
        throw new DemoFailure(`${task.name} ended before it held a lease (${task.end()})`);
      this.options.view.say(`${task.name} has ended (${task.end()})`, 'red');
      this.#start('started in its place');
    }
  }
}
