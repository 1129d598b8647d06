import { ZooKeeperClient } from '../../../src/zookeeper/client/zookeeper-client.js';
import { EPOCH_MS } from '../world/conditions.js';
import type { Dice } from '../world/dice.js';
import { Machine } from '../world/machine.js';
import { SimulatedProcess } from '../world/simulated-process.js';
import type { ClientHost } from './client-host.js';
import type { Connection } from './ensemble/connection.js';
import { SimulatedSession } from './simulated-session.js';
import type { RecipeWorld } from './world.js';

/** No timer is exactly on time, in milliseconds: a clock that has not moved on would be asked for ever. */
const LEAST_LATENESS_MS = 0.05;

/** One run of a task: its process, its client, and what it needs to live. */
export interface Run {
  readonly name: string;
  readonly host: number;
  readonly process: SimulatedProcess;
  readonly zookeeper: ZooKeeperClient;
  readonly dice: Dice;
  /** When it was last stopped or continued, in true time. */
  disturbedAt: number;
  /** While it gives something back. */
  releasing: boolean;
}

/** A machine with one task, which is started again whenever it has ended. */
export class MachineHost {
  readonly machine: Machine;
  run: Run | undefined;
  readonly #dice: Dice;
  readonly #heldUntil: number[];
  #starts = 0;
  #sessions: SimulatedSession[] = [];
  #connections: Connection[] = [];

  /** @param live what the task does, until its end; its errors are violations */
  constructor(
    private readonly world: RecipeWorld,
    readonly index: number,
    private readonly live: (run: Run) => Promise<void>,
  ) {
    const { monotonicStart, rate } = world.conditions.machines[
      index
    ] as RecipeWorld['conditions']['machines'][number];
    this.machine = new Machine(EPOCH_MS, rate, monotonicStart, rate);
    this.#dice = world.dice.fork(10 + index);
    this.#heldUntil = Array.from({ length: world.conditions.servers }, () => 0);
  }

  start(): void {
    const { world } = this;
    const { scheduler, conditions } = world;
    const lateness = this.#dice.fork(0, this.#starts);
    const process = new SimulatedProcess(
      scheduler,
      this.machine,
      () => lateness.between(LEAST_LATENESS_MS, conditions.latenessMs),
      conditions.seesFirst,
    );
    scheduler.at(scheduler.now, process, () => {
      const run = this.open(process);
      this.live(run).catch((error: unknown) => world.fail('errors', `${run.name} fails: ${reported(error)}`));
    });
  }

  /** Opens a client in a process. */
  open(process: SimulatedProcess, chroot = ''): Run {
    const { world } = this;
    const { conditions } = world;
    this.#starts += 1;
    const dice = this.#dice.fork(this.#starts);
    const name = `task ${this.index}.${this.#starts}`;
    this.#sessions = [];
    this.#connections = [];
    if (world.recording) world.note(name, 'starts');
    const servers = Array.from({ length: conditions.servers }, (_, index) => `server-${index}:2181`).join(
      ',',
    );
    const client = this.#clientHost(process, dice.fork(2), name);
    const zookeeper = new ZooKeeperClient(
      {
        connect: `${servers}${chroot}`,
        sessionTimeoutMs: conditions.sessionTimeoutMs,
        clock: process.clock,
        random: dice.fork(3),
      },
      (options) => {
        const session = new SimulatedSession(options, client);
        this.#sessions.push(session);
        return session;
      },
    );
    if (world.recording)
      zookeeper.onState((state) =>
        world.note(name, `is ${state.status}${'sessionId' in state ? ` ${state.sessionId.slice(-3)}` : ''}`),
      );
    const run: Run = {
      name,
      host: this.index,
      process,
      zookeeper,
      dice: dice.fork(4),
      disturbedAt: 0,
      releasing: false,
    };
    this.run = run;
    return run;
  }

  #clientHost(process: SimulatedProcess, dice: Dice, name: string): ClientHost {
    const { world } = this;
    const { scheduler, ensemble, conditions } = world;
    const [latency, faults] = [dice.fork(1), dice.fork(2)];
    let number = 0;
    return {
      connect: (server, take) => {
        const connection = ensemble.connect(server, {
          actor: process,
          latencyMs: () => latency.between(...conditions.latencyMs),
          heldUntil: (index) => this.#heldUntil[index] as number,
          take,
        });
        this.#connections = [...this.#connections.filter(({ serverOpen }) => serverOpen), connection];
        return connection;
      },
      atEndOfTurn: (act) => void scheduler.at(scheduler.now, process, act),
      fault: () => {
        number += 1;
        if (world.quiet) return 0;
        const { rates, slowMs } = conditions;
        const drawn = faults.fork(number);
        const happens = (kind: 'request-lost' | 'reply-lost' | 'slow') =>
          drawn.chance(rates[kind]) && world.happens(kind, `${kind}: ${name}, request ${number}`);
        if (happens('request-lost')) return 'request-lost';
        if (happens('reply-lost')) return 'reply-lost';
        return happens('slow') ? drawn.between(0, Math.min(slowMs, conditions.quietAt - scheduler.now)) : 0;
      },
      losesSent: () => dice.fork(3, number).chance(0.5),
    };
  }

  /** SIGSTOP, and SIGCONT later. */
  pause(lastsMs: number): void {
    const { run, world } = this;
    if (run === undefined) return;
    const { scheduler } = world;
    run.process.stop();
    scheduler.at(scheduler.now + lastsMs, undefined, () => {
      if (!run.process.alive) return;
      run.disturbedAt = scheduler.now;
      run.process.resume();
    });
  }

  /** SIGKILL, and a new task after a while. */
  crash(afterMs: number): void {
    const { run, world } = this;
    if (run === undefined) return;
    const { scheduler } = world;
    if (world.recording) world.note(run.name, 'is killed');
    this.run = undefined;
    run.process.kill();
    for (const session of this.#sessions) session.kill();
    scheduler.at(scheduler.now + afterMs, undefined, () => this.start());
  }

  /** The network to one server is cut, or to all of them. */
  cutOff(lastsMs: number, server: number | undefined): void {
    const until = this.world.scheduler.now + lastsMs;
    for (const index of this.#heldUntil.keys())
      if (server === undefined || server === index)
        this.#heldUntil[index] = Math.max(this.#heldUntil[index] as number, until);
  }

  /** What is between this machine and its server breaks their connection. */
  reset(lossy: boolean): void {
    for (const connection of this.#connections) connection.reset(lossy);
  }

  /** The task closes its client, and another one begins. */
  close(): void {
    const { run, world } = this;
    if (run === undefined) return;
    const { scheduler } = world;
    this.run = undefined;
    scheduler.at(scheduler.now, run.process, () => {
      if (world.recording) world.note(run.name, 'closes its client');
      void run.zookeeper.close().then(() => this.start());
    });
  }
}

function reported(error: unknown): string {
  return error instanceof Error ? `${error.message}${error.stack ? `\n${error.stack}` : ''}` : String(error);
}
