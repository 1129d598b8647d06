import type { Child, ChildEnd } from '../../../src/app/supervisor/child.js';
import { GUARD_MARGIN_MS, type Guard } from '../../../src/app/supervisor/guard.js';
import type { Dice } from './dice.js';
import type { Planned, Scheduler } from './scheduler.js';
import { SimulatedProcess } from './simulated-process.js';

export interface ChildOptions {
  readonly scheduler: Scheduler;
  /** The supervisor. */
  readonly parent: SimulatedProcess;
  readonly dice: Dice;
  /** A command that ignores SIGTERM. */
  readonly stubborn: boolean;
}

/** A command under `nodelease run`: a process of its own on its supervisor's machine. */
export class SimulatedChild implements Child {
  readonly process: SimulatedProcess;
  readonly ended: Promise<ChildEnd>;
  readonly group = {
    id: 1,
    signal: (signal: NodeJS.Signals) => this.signal(signal),
    isAlive: () => this.process.alive,
  };
  #begun = false;
  #ending = false;
  #reportEnd: (end: ChildEnd) => void = () => undefined;

  constructor(private readonly options: ChildOptions) {
    this.process = new SimulatedProcess(options.scheduler, options.parent.machine, () => 0);
    this.ended = new Promise((resolve) => {
      this.#reportEnd = resolve;
    });
  }

  /** True while it may act: not before it begins, and not while its machine stands still. */
  get acts(): boolean {
    return this.#begun && this.process.alive && !this.process.stopped;
  }

  begin(): void {
    this.#begun = true;
  }

  signal(signal: NodeJS.Signals): void {
    if (!this.process.alive) return;
    if (signal === 'SIGKILL') this.end({ signal });
    else if (signal === 'SIGTERM' && !this.options.stubborn && !this.#ending) {
      this.#ending = true;
      this.endAfter(this.options.dice.magnitude(1, 2_000));
    }
  }

  /** Ends by itself, in that many milliseconds of its own time. */
  endAfter(ms: number): void {
    const { scheduler } = this.options;
    scheduler.at(scheduler.now + ms, this.process, () => this.end({ code: 0 }));
  }

  end(end: ChildEnd): void {
    if (!this.process.alive) return;
    this.process.kill();
    const { scheduler, parent } = this.options;
    scheduler.at(scheduler.now, parent, () => this.#reportEnd(end));
  }
}

/**
 * The guard next to a supervisor: kills the command shortly before the last deadline that it got, and when
 * the supervisor dies.
 */
export class SimulatedGuard implements Guard {
  readonly process: SimulatedProcess;
  readonly failed = new Promise<string>(() => undefined);
  #strike: Planned | undefined;
  #done = false;

  constructor(
    private readonly scheduler: Scheduler,
    supervisor: SimulatedProcess,
    private readonly child: () => SimulatedChild | undefined,
  ) {
    this.process = new SimulatedProcess(scheduler, supervisor.machine, () => 0);
  }

  watch(): void {}

  extend(deadline: number): void {
    if (this.#strike !== undefined) this.#strike.cancelled = true;
    const { clock, machine } = this.process;
    const leftMs = machine.trueMs(deadline - GUARD_MARGIN_MS - clock.monotonic());
    this.#strike = this.scheduler.at(this.scheduler.now + leftMs, this.process, () => this.#kill());
  }

  done(): void {
    this.#done = true;
    if (this.#strike !== undefined) this.#strike.cancelled = true;
  }

  /** The supervisor has died: the pipe between the two is closed. */
  supervisorDied(afterMs: number): void {
    this.scheduler.at(this.scheduler.now + afterMs, this.process, () => this.#kill());
  }

  #kill(): void {
    if (!this.#done) this.child()?.end({ signal: 'SIGKILL' });
  }
}
