import type { Clock } from '../../../core/base/clock.js';
import { type ClusterStatus, inspectCluster, type NodeStatus } from '../../../core/lease/operate/inspect.js';
import type { StoreSession } from '../../../core/lease/session/store-session.js';
import { type LeaseChange, leaseChanges } from '../../../node/monitor/lease-changes.js';
import { expiresInMs } from '../../../node/monitor/status-report.js';
import { formatDuration, formatSetting } from '../../kit/terminal/text.js';
import type { Act, DemoView } from './demo-view.js';

/** One task of the demo: a process `nodelease run`, and its command. */
export interface DemoTask {
  readonly name: string;
  /** 0 when it could not be started. */
  readonly pid: number;
  /** How it ended, for people; undefined while it runs. */
  end(): string | undefined;
  /** Ends it at once, as an accident would: it releases nothing. */
  kill(): void;
  /** Halts it, as a paused machine would; its guard and its command run. */
  freeze(): void;
  /** Lets it continue. */
  thaw(): void;
  /**
   * Asks it to end, and resolves when it has: its lease is released then. Kills it when that takes too long.
   */
  stop(): Promise<void>;
}

interface Accident {
  readonly at: number;
  readonly version: number;
  readonly act: Act;
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
 * Kills and replaces tasks of a fleet in turn, until its user does that, and shows what becomes of their
 * leases, as the store shows it.
 */
export class DemoStory {
  /** The running tasks, in the order of their starts. */
  #tasks: DemoTask[] = [];
  /** Those of them in whose place another one has been started. */
  readonly #replaced = new Set<DemoTask>();
  #nodes: readonly NodeStatus[] = [];
  /** When that reading began. */
  #readAt = 0;
  #started = 0;
  #killed = 0;
  /** When the user last did something. */
  #actedAt: number | undefined;
  /** The node ids of killed and frozen tasks, until other ones have taken them over. */
  readonly #accidents = new Map<number, Accident>();
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
      await this.#watch(allHeld, () => this.#outlook(), signal, 'not all node ids are held');
      const killAt = clock.monotonic() + (once ? CALM_MS.once : CALM_MS.endless);
      const left = () => Math.ceil(Math.max(0, killAt - clock.monotonic()) / 1_000);
      const killing = () => {
        if (this.#accidents.size > 0) return this.#outlook();
        if (this.#actedAt !== undefined) return 'All node ids are held.';
        return `${this.#nextToKill?.taskId ?? 'A task'} will be killed in ${left()} s`;
      };
      await this.#watch(() => isPast(killAt)() || !allHeld(), killing, signal);
      const next = this.#nextToKill;
      if (this.#actedAt !== undefined || !next || !this.#act('kill', next.id)) continue;
      this.#killed += 1;
      const taken = () => !this.#accidents.has(next.id);
      await this.#watch(taken, () => this.#outlook(), signal, `no task has taken over node id ${next.id}`);
      if (once) return this.#watch(isPast(clock.monotonic() + SHOW_MS), () => '', signal);
    }
  }

  /**
   * Does something to the task that holds a node id. From then on no task is killed by itself. False where no
   * task holds it.
   */
  act(act: Act, id: number): boolean {
    const isDone = this.#act(act, id);
    if (isDone) this.#actedAt = this.options.clock.monotonic();
    return isDone;
  }

  /** Ends all tasks, first those without a node id, which could only take over what others release. */
  async end(): Promise<void> {
    const { view } = this.options;
    for (const task of this.#replaced) task.thaw();
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
   * @param late what has not happened when it takes more than a minute, from the user's last act
   */
  async #watch(isDone: () => boolean, next: () => string, signal: AbortSignal, late?: string) {
    const { clock } = this.options;
    const begun = clock.monotonic();
    for (;;) {
      await this.#read(next());
      this.#replaceEnded();
      if (isDone()) return;
      if (late && clock.monotonic() - Math.max(begun, this.#actedAt ?? begun) >= TIMEOUT_MS)
        throw new DemoFailure(`${late} after ${formatSetting(TIMEOUT_MS)}`);
      await clock.sleep(READ_MS, signal);
    }
  }

  /** Reads the leases, and shows what has changed since the last time. */
  async #read(next: string) {
    const { session, view, clock } = this.options;
    const begun = clock.monotonic();
    const status = await inspectCluster(session);
    const sinceMs = clock.monotonic() - this.#readAt;
    const changes = leaseChanges(this.#nodes, status?.nodes ?? [], { sinceMs });
    this.#readAt = begun;
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
      // Somebody else has frozen it.
      const task = this.#running(taskId);
      if (task) this.#replace(task);
    } else if (change.kind === 'acquired' || change.kind === 'taken-over') {
      const accident = this.#accidents.get(id);
      if (taskId !== null) this.#held.add(taskId);
      if (accident && version > accident.version) {
        const took = `${formatDuration(clock.monotonic() - accident.at)} after the ${accident.act}`;
        view.say(
          `${taskId} took over node id ${id}: version ${accident.version} -> ${version}, ${took}`,
          'green',
        );
        this.#accidents.delete(id);
      } else view.say(`${taskId} acquired node id ${id} at version ${version}`, 'green');
      const frozen = change.kind === 'taken-over' && this.#running(change.previousTaskId);
      if (!frozen) return;
      view.say(`${frozen.name} continues by SIGCONT, and finds that its lease is lost`, 'dim');
      frozen.thaw();
    }
  }

  /** What is going to happen while not all node ids are held. */
  #outlook() {
    const ids = [...this.#accidents.keys()];
    if (ids.length === 0) return 'The tasks acquire their node ids …';
    const what = ids.length === 1 ? `Node id ${ids} is` : `Node ids ${ids.join(' and ')} are`;
    return `${what} taken over when the lease and the grace period are over …`;
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

  #running(name: string | null): DemoTask | undefined {
    return this.#tasks.find((task) => task.name === name);
  }

  /** Does something to the task that holds a node id, and starts another one. False where no task holds it. */
  #act(act: Act, id: number): boolean {
    const { clock, view } = this.options;
    const node = this.#nodes.find((each) => each.id === id && each.state === 'held');
    const task = this.#running(node?.taskId ?? null);
    if (node === undefined || task === undefined || this.#replaced.has(task)) return false;
    const { version } = node;
    if (act === 'stop') {
      view.say(
        `${task.name} is asked to stop by SIGTERM: it releases node id ${id} when it has ended`,
        'yellow',
      );
      void task.stop();
    } else {
      const left = formatDuration(Math.max(0, expiresInMs(node) ?? 0));
      const how = act === 'kill' ? 'killed by SIGKILL' : 'frozen by SIGSTOP';
      view.say(`${task.name} ${how}: node id ${id} (version ${version}) expires in ${left}`, 'red');
      this.#accidents.set(id, { at: clock.monotonic(), version, act });
      task[act]();
    }
    this.#replace(task);
    if (act === 'kill') this.#tasks = this.#tasks.filter((each) => each !== task);
    return true;
  }

  /** Starts another task in the place of one that has a node id, once. */
  #replace(task: DemoTask) {
    if (this.#replaced.has(task)) return;
    this.#replaced.add(task);
    this.#start('started in its place: no node id is free, it waits');
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
      const isReplaced = this.#replaced.delete(task);
      this.options.view.say(`${task.name} has ended (${task.end()})`, isReplaced ? 'dim' : 'red');
      if (!isReplaced) this.#start('started in its place');
    }
  }
}
