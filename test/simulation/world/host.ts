import { SignalRelay } from '../../../src/app/kit/terminal/signal-relay.js';
import { supervise } from '../../../src/app/supervisor/supervisor.js';
import { StoreUnusableError } from '../../../src/core/base/errors.js';
import type { Lease, LeaseEvent } from '../../../src/core/lease/model/lease.js';
import type { WatchedTask } from '../checks/invariants.js';
import type { Engine } from '../engine.js';
import { EPOCH_MS, type HostConditions } from './conditions.js';
import type { Dice } from './dice.js';
import { IdMaker } from './id-maker.js';
import { Machine } from './machine.js';
import { ShardWorker } from './shard-worker.js';
import { SimulatedChild, SimulatedGuard } from './simulated-child.js';
import { SimulatedProcess } from './simulated-process.js';
import { SimulatedSignals } from './simulated-signals.js';
import { SimulatedStore } from './simulated-store.js';
import type { World } from './world.js';

/** One run of a task: its process and everything that was started with it. */
interface Run {
  readonly name: string;
  readonly process: SimulatedProcess;
  readonly signals: SimulatedSignals;
  readonly acquiring: AbortController;
  child: SimulatedChild | undefined;
  guard: SimulatedGuard | undefined;
  watched: WatchedTask | undefined;
  /** What makes unique ids in its process. */
  ids: IdMaker | undefined;
  /** Ends the work of a program that uses the library. */
  stop: (() => void) | undefined;
  /** Whether it ends although its work on shards may go on until then. */
  leavesWork: boolean;
  /** Its work on shards. */
  shards: ShardWorker | undefined;
}

/** A machine, with an orchestrator that starts its task again whenever it has ended. */
export class Host {
  readonly machine: Machine;
  readonly #dice: Dice;
  readonly #runs: Run[] = [];
  #current: Run | undefined;
  #starts = 0;
  #frozen = 0;
  #cuts = 0;
  #startWhenThawed = false;

  constructor(
    private readonly world: World,
    readonly index: number,
    private readonly conditions: HostConditions,
    private readonly engine: Engine,
  ) {
    const { wallOffset, wallDrift, monotonicStart, monotonicDrift } = conditions;
    this.machine = new Machine(EPOCH_MS + wallOffset, wallDrift, monotonicStart, monotonicDrift);
    this.#dice = world.dice.fork(10 + index);
  }

  /** Starts the task now, unless it runs. */
  start(): void {
    if (this.#current !== undefined) return;
    if (this.#frozen > 0) {
      this.#startWhenThawed = true;
      return;
    }
    const { world } = this;
    this.#forgetEnded();
    this.#starts += 1;
    const dice = this.#dice.fork(this.#starts);
    const lateness = dice.fork(1);
    const { latenessMs, hearsFirst } = world.conditions;
    const process = new SimulatedProcess(
      world.scheduler,
      this.machine,
      () => lateness.between(0, latenessMs),
      hearsFirst ? 'replies' : undefined,
    );
    const run: Run = {
      name: `task ${this.index}.${this.#starts}`,
      process,
      signals: new SimulatedSignals(),
      acquiring: new AbortController(),
      child: undefined,
      guard: undefined,
      watched: undefined,
      ids: undefined,
      stop: undefined,
      leavesWork: false,
      shards: undefined,
    };
    this.#runs.push(run);
    this.#current = run;
    if (world.recording) world.note(run.name, `starts (${this.conditions.mode})`);
    world.scheduler.at(world.scheduler.now, process, () => void this.#live(run, dice));
  }

  /**
   * SIGTERM to the task: it releases its lease and ends. Killed when it has not ended in time; it is not
   * started again.
   */
  retire(): void {
    const run = this.#current;
    if (run === undefined) return;
    this.#current = undefined;
    this.#stop(run);
    this.world.scheduler.at(this.world.scheduler.now + 5_000, undefined, () => this.#kill(run));
  }

  /** SIGKILL to the task; the orchestrator starts it again. */
  crash(): void {
    const run = this.#current;
    if (run === undefined || !run.process.alive) return;
    this.#kill(run);
    this.#startAgain();
  }

  /** The network between this machine and the store is cut. */
  cutOff(lastsMs: number): void {
    const { scheduler } = this.world;
    this.#cuts += 1;
    scheduler.at(scheduler.now + lastsMs, undefined, () => {
      this.#cuts -= 1;
    });
  }

  /** The orchestrator has lost sight of the task, which goes on, and starts it again. */
  abandon(): void {
    this.#current = undefined;
    this.start();
  }

  /** The task's last step before it is stopped. */
  beforeStop(): void {
    const run = this.#current;
    if (run === undefined) return;
    const { scheduler } = this.world;
    scheduler.at(scheduler.now, run.process, () => run.ids?.makeSometimes());
  }

  /** SIGSTOP to the task, and SIGCONT later. */
  pause(lastsMs: number): void {
    const run = this.#current;
    if (run === undefined) return;
    this.#stopFor([run.process], lastsMs);
  }

  /** The machine stands still, with everything on it. */
  freeze(lastsMs: number): void {
    const runs = this.#runs.filter(({ process, child }) => process.alive || child?.process.alive);
    const guards = runs.flatMap(({ guard }) => guard?.process ?? []);
    const others = runs.flatMap(({ process, child }) => [process, child?.process ?? []].flat());
    const { scheduler } = this.world;
    this.#frozen += 1;
    this.#stopFor(guards, lastsMs);
    scheduler.at(scheduler.now + lastsMs, undefined, () => {
      this.#frozen -= 1;
      if (this.#frozen > 0 || !this.#startWhenThawed) return;
      this.#startWhenThawed = false;
      this.start();
    });
    // Planned by the guards' own thaw, so that what a guard was late with has happened before the command
    // does anything: another machine's step in the same instant must not find it running.
    this.#stopFor(others, lastsMs, (resume) => scheduler.at(scheduler.now, undefined, resume));
  }

  #stopFor(
    processes: readonly SimulatedProcess[],
    lastsMs: number,
    then: (resume: () => void) => void = (resume) => resume(),
  ): void {
    const { scheduler, invariants } = this.world;
    for (const process of processes) {
      process.stop();
      invariants.onDisturbed(process);
    }
    scheduler.at(scheduler.now + lastsMs, undefined, () =>
      then(() => {
        this.#makeIdsFirst(processes);
        for (const process of processes) process.resume();
      }),
    );
  }

  /** Before a process that goes on has looked at anything, it may make ids as if nothing had happened. */
  #makeIdsFirst(processes: readonly SimulatedProcess[]): void {
    const { scheduler } = this.world;
    for (const { process, ids } of this.#runs) {
      if (ids !== undefined && process.alive && processes.includes(process))
        scheduler.at(scheduler.now, process, () => ids.makeSometimes());
    }
  }

  #stop(run: Run): void {
    const { scheduler } = this.world;
    scheduler.at(scheduler.now, run.process, () => {
      run.acquiring.abort(new AskedToEnd('the task was asked to end'));
      run.signals.emit('SIGTERM');
      run.stop?.();
    });
  }

  #kill(run: Run): void {
    if (!run.process.alive) return;
    if (this.world.recording) this.world.note(run.name, 'is killed');
    run.process.kill();
    run.guard?.supervisorDied(this.#dice.between(0, 5));
  }

  async #live(run: Run, dice: Dice): Promise<void> {
    const { world } = this;
    try {
      const lease = await this.#acquire(run, dice);
      run.watched = { name: run.name, process: run.process, lease, workRuns: () => run.child?.acts ?? false };
      world.invariants.onAcquired(run.watched);
      world.recorder?.onAcquired(run.watched);
      run.ids = new IdMaker({ world, process: run.process, dice: dice.fork(8), name: run.name, lease });
      run.ids.begin();
      if (this.engine.ownsShards) {
        const { name, process } = run;
        const giveUp = () => {
          run.leavesWork = true;
          run.stop?.();
        };
        const isProgram = this.conditions.mode === 'library';
        const task = { name, process, lease, host: this.index };
        run.shards = new ShardWorker(world, task, dice.fork(9), isProgram ? giveUp : undefined);
        run.shards.begin();
      }
      if (this.conditions.mode === 'library') await this.#use(run, lease, dice);
      else await this.#supervise(run, lease, dice);
    } catch (error) {
      if (world.recording) world.note(run.name, `fails: ${String(error)}`);
      if (!isExpected(error, world)) world.invariants.onUnexpected(run.name, error);
    }
    if (world.recording) world.note(run.name, 'ends');
    run.process.kill();
    if (this.#current === run) this.#startAgain();
  }

  #acquire(run: Run, dice: Dice): Promise<Lease> {
    const { world, engine } = this;
    const client = new SimulatedStore({
      world,
      process: run.process,
      dice: dice.fork(2),
      name: run.name,
      cutOff: () => this.#cuts > 0,
    });
    return engine.acquire({
      store: world.opened(client, run.process),
      clock: run.process.clock,
      random: dice.fork(3),
      taskId: `task-${this.index}${world.conditions.sameTaskId ? '' : `-${this.#starts}`}`,
      ...this.conditions.wanted,
      signal: run.acquiring.signal,
      onEvent: (event) => this.#hear(run, event),
    });
  }

  #hear(run: Run, event: LeaseEvent): void {
    const { world } = this;
    if (world.recording && event.type !== 'waiting') world.note(run.name, reported(event));
    if (event.type === 'acquired') {
      world.counts.tenures += 1;
      if (event.from === 'expired') world.counts.takeOvers += 1;
    } else if (event.type === 'damaged') world.invariants.onDamaged(run.name, event);
    else if (event.type === 'renewed') run.guard?.extend(event.deadline);
    else if (event.type === 'retiring' && run.watched !== undefined)
      world.invariants.onRetiring(run.watched, event.size);
    else if (event.type === 'lost' && run.watched !== undefined) {
      world.invariants.onLost(run.watched, event.error);
      world.recorder?.onLost(run.watched, event.error);
    }
  }

  /** A program that works while `isValid()` says so, and ends by itself or with its lease. */
  async #use(run: Run, lease: Lease, dice: Dice): Promise<void> {
    const { scheduler, conditions } = this.world;
    const { retireAfterMs } = this.conditions;
    const endsAt = scheduler.now + this.#tenureMs(dice);
    lease.setKnownNodes({ [lease.id]: lease.version, [dice.below(100)]: dice.below(100) });
    const next = await new Promise<'release' | 'exit'>((resolve) => {
      if (lease.signal.aborted) return resolve('exit');
      lease.signal.addEventListener('abort', () => resolve('exit'), { once: true });
      run.stop = () => resolve('release');
      scheduler.at(endsAt, run.process, () => {
        if (this.#mayEnd(run)) resolve('release');
      });
      if (retireAfterMs === undefined) return;
      const onRetiring = () => {
        // No child takes its time when the faults are over.
        const latest = Math.max(scheduler.now, conditions.quietAt);
        scheduler.at(Math.min(scheduler.now + retireAfterMs, latest), run.process, () => resolve('release'));
      };
      lease.retiring.addEventListener('abort', onRetiring, { once: true });
    });
    if (next === 'release') {
      if ((await run.shards?.leave()) === false) run.leavesWork = true;
      await this.#release(run, lease);
      if (!run.leavesWork) await run.shards?.programEnds();
    }
    // By its own clock: no other task may start the shards that it has left before.
    if (run.leavesWork) await run.process.clock.sleep(lease.deadline - run.process.clock.monotonic());
  }

  /** A command under `nodelease run`. */
  async #supervise(run: Run, lease: Lease, dice: Dice): Promise<void> {
    const { world, machine } = this;
    const { scheduler } = world;
    const child = new SimulatedChild({
      scheduler,
      parent: run.process,
      dice: dice.fork(4),
      stubborn: this.conditions.stubborn,
    });
    run.guard = new SimulatedGuard(scheduler, run.process, () => run.child);
    const endsAt = scheduler.now + this.#tenureMs(dice);
    scheduler.at(endsAt, child.process, () => {
      if (this.#mayEnd(run)) child.endAfter(0);
    });
    const signals = new SignalRelay(run.signals);
    const { workEnded } = await supervise({
      lease,
      clock: run.process.clock,
      log: SILENT,
      guard: run.guard,
      signals,
      keyboard: false,
      onRetire: this.conditions.retireAfterMs === undefined ? 'drain' : 'stop',
      start: async () => {
        run.child = child;
        // Starting a process takes time.
        await run.process.clock.sleep(machine.trueMs(dice.fork(5).between(1, 30)));
        return child;
      },
    });
    if (workEnded && lease.isValid()) await this.#release(run, lease);
  }

  async #release({ ids }: Run, lease: Lease): Promise<void> {
    ids?.makeSometimes();
    const released = lease.release();
    ids?.makeSometimes();
    await released;
    ids?.makeSometimes();
  }

  #tenureMs(dice: Dice): number {
    const [least, most] = this.world.conditions.tenureMs;
    return dice.fork(6).magnitude(least, most);
  }

  #mayEnd(run: Run): boolean {
    const { world } = this;
    return (
      world.conditions.releases && !world.quiet && world.happens('release', `${run.name} has done its work`)
    );
  }

  #startAgain(): void {
    const { world } = this;
    this.#current = undefined;
    const { now } = world.scheduler;
    const soon = Math.max(now, world.conditions.quietAt) + 1_000;
    const at = now + this.#dice.fork(7, this.#starts).magnitude(20, 30_000);
    world.scheduler.at(Math.min(at, soon), undefined, () => this.start());
  }

  #forgetEnded(): void {
    for (const run of this.#runs.splice(0)) {
      if (run.process.alive || run.child?.process.alive) this.#runs.push(run);
      else if (run.watched !== undefined) this.world.invariants.onEnded(run.watched);
    }
  }
}

/** A task was asked to end while it waited for an id. */
class AskedToEnd extends Error {}

/** Whether a task may fail like this: everything else is a mistake, of the engine's or the simulator's. */
function isExpected(error: unknown, { restored }: World): boolean {
  // A store that has gone back is no store that ignores conditions.
  if (error instanceof StoreUnusableError) return restored.length === 0 || error.code !== 'STORE_UNSAFE';
  return error instanceof AskedToEnd;
}

const SILENT = { info: () => undefined, warn: () => undefined, error: () => undefined };

function reported(event: LeaseEvent): string {
  switch (event.type) {
    case 'acquired':
      return `acquired node id ${event.id} version ${event.version} (${event.from})`;
    case 'lost':
      return event.error.message;
    case 'renewal-failed':
      return `renewal failed: ${String(event.error)}`;
    case 'store-failed':
    case 'release-failed':
      return `${event.type}: ${String(event.error)}`;
    case 'retiring':
      return `learns that there are ${event.size} node ids now`;
    default:
      return event.type;
  }
}
