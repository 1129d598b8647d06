import { ProgramShards } from '../../../src/app/shards/program-shards.js';
import { aborted } from '../../../src/core/base/abort.js';
import type { ShardRun, ShardTask } from '../checks/shard-observer.js';
import { PROGRAM_GONE } from './conditions.js';
import type { Dice } from './dice.js';
import type { World } from './world.js';

/**
 * A program that does the work of the shards of a sidecar, next to it: it follows the events, ends the work
 * that it is asked to end, and answers. Its stream breaks, while it works on. Both are asked to end at once.
 */
export class ShardProgram {
  readonly shards: ProgramShards;
  readonly #running = new Map<number, ShardRun>();
  #isFollowing = false;
  #breaks = 0;
  /** What it has to hear, in its order. */
  #news: Promise<void> = Promise.resolve();
  #isEnding = false;
  /** Whether it was asked to end with its sidecar; then it answers no stop, but says when all has ended. */
  #isGoing = false;

  constructor(
    private readonly world: World,
    private readonly task: ShardTask,
    private readonly dice: Dice,
    stopTimeoutMs: number,
  ) {
    this.shards = new ProgramShards(task.process.clock, stopTimeoutMs, (changed) => this.#hear([...changed]));
    this.shards.isWorking = true;
    void aborted(task.lease.signal).then(() => this.#endAll());
    this.#follow();
    this.#breakLater();
  }

  /** SIGTERM to the sidecar and, at about the same time, mostly to the program. */
  async leave(leave: () => PromiseLike<void>): Promise<boolean> {
    const { world, dice } = this;
    if (world.recording) world.note(this.task.name, 'the sidecar is asked to end');
    this.#isEnding = true;
    if (dice.chance(0.7)) void this.#end();
    if (dice.chance(0.5)) await this.task.process.clock.sleep(dice.magnitude(1, 500));
    const { signal } = this.task.lease;
    return (await this.shards.leave(leave, signal)) === 0;
  }

  /** Ends all of its work. */
  async ends(): Promise<void> {
    await Promise.all([...this.#running.values()].map((run) => this.#stop(run)));
  }

  /** The program ends its work by itself; half of these programs close the stream before it has ended. */
  async #end(): Promise<void> {
    const { dice, task } = this;
    await task.process.clock.sleep(dice.magnitude(1, 200));
    this.#isGoing = true;
    if (dice.chance(0.5)) this.#unfollow();
    const says = dice.chance(0.5);
    await this.ends();
    if (says) this.shards.received({ type: 'ended' });
    this.#unfollow();
  }

  /** Hears, after a while, of shards as they are then. */
  #hear(changed: readonly number[]): void {
    const { clock } = this.task.process;
    const latencyMs = this.dice.magnitude(1, 50);
    this.#news = this.#news.then(() => clock.sleep(latencyMs)).then(() => this.#act(changed));
  }

  #act(changed: readonly number[]): void {
    const { invariants } = this.world;
    const { lease } = this.task;
    for (const shard of this.#isFollowing && !this.#isGoing ? changed : []) {
      const held = this.shards.get(shard);
      const run = this.#running.get(shard);
      if (held === undefined || !lease.isValid()) continue;
      if (held.deadline !== null) void this.#answer(shard, held.token, run);
      else if (run === undefined)
        this.#running.set(shard, invariants.shards.begin(this.task, shard, held.token));
    }
  }

  async #answer(shard: number, token: number, run: ShardRun | undefined): Promise<void> {
    if (run !== undefined) await this.#stop(run);
    // One that never answers at the end: the lease has to expire.
    if (this.#isEnding && !this.world.quiet && this.dice.chance(0.05)) return;
    this.shards.received({ type: 'stopped', shard, token });
  }

  async #stop(run: ShardRun): Promise<void> {
    const { world, dice, task } = this;
    await task.process.clock.sleep(dice.magnitude(1, world.quiet ? 500 : 4_000));
    world.invariants.shards.stopped(run);
    if (this.#running.get(run.shard) === run) this.#running.delete(run.shard);
  }

  #endAll(): void {
    for (const run of this.#running.values()) this.world.invariants.shards.end(run);
    this.#running.clear();
  }

  #follow(): void {
    if (this.#isFollowing || this.#isGoing) return;
    this.#isFollowing = true;
    this.shards.received({ type: 'followers', change: 1 });
    this.#hear(this.shards.all().map(({ shard }) => shard));
  }

  #unfollow(): void {
    if (!this.#isFollowing) return;
    this.#isFollowing = false;
    this.shards.received({ type: 'followers', change: -1 });
  }

  #breakLater(): void {
    const { world, dice, task } = this;
    const { scheduler } = world;
    const [breakMs, backMs] = [dice.magnitude(2_000, 60_000), dice.magnitude(50, 8_000)];
    scheduler.at(scheduler.now + breakMs, task.process, () => {
      if (!this.#isFollowing || world.quiet) return;
      this.#breaks += 1;
      if (!world.happens(PROGRAM_GONE, `${task.name} loses its program (${this.#breaks})`)) return;
      this.#unfollow();
      scheduler.at(scheduler.now + backMs, task.process, () => {
        this.#follow();
        this.#breakLater();
      });
    });
  }
}
