import { aborted, onAbort } from '../../../src/core/base/abort.js';
import { LeaseLostError, LeaseReleasedError } from '../../../src/core/lease/model/lease.js';
import { StoreError } from '../../../src/core/store/lease-store.js';
import { type OwnedShards, ownShards } from '../../../src/node/shards/index.js';
import type { ShardTask } from '../checks/shard-observer.js';
import type { Dice } from './dice.js';
import { ShardProgram } from './shard-program.js';
import type { World } from './world.js';

const STOP_TIMEOUT_MS = 3_000;

/** A task's work on shards: when it begins to take part, and how long each start and stop takes. */
export class ShardWorker {
  /** What does the work of a sidecar. */
  readonly #program: ShardProgram | undefined;
  #shards: OwnedShards | undefined;

  constructor(
    private readonly world: World,
    private readonly task: ShardTask,
    private readonly dice: Dice,
    /** Ends the program, whose work may not have ended; undefined where it cannot. */
    private readonly giveUp: (() => void) | undefined,
  ) {
    if (giveUp && dice.fork(1).chance(0.3))
      this.#program = new ShardProgram(world, task, dice.fork(2), STOP_TIMEOUT_MS);
  }

  /** Once the lease is held: it takes part from some time on, or never. */
  begin(): void {
    const { dice } = this;
    this.world.invariants.shards.recorder?.onTenure(this.task);
    if (!dice.chance(0.1))
      this.#after(dice.chance(0.5) ? 0 : dice.magnitude(1, 3_000), () => this.#takePart());
  }

  /** The task is to end. Resolves to whether all work of a sidecar's program has ended. */
  async leave(): Promise<boolean> {
    const shards = this.#shards;
    return shards && this.#program ? this.#program.leave(() => shards[Symbol.asyncDispose]()) : true;
  }

  /** A sidecar's program ends what it still does, after the sidecar: nothing, if that has asked it before. */
  async programEnds(): Promise<void> {
    await this.#program?.ends();
  }

  async #takePart(): Promise<void> {
    const { world, task, dice } = this;
    const { invariants } = world;
    const { lease, process } = task;
    if (!lease.isValid()) return;
    try {
      this.#shards = await ownShards(lease, {
        count: invariants.shards.count,
        startTimeoutMs: 3_000,
        stopTimeoutMs: STOP_TIMEOUT_MS,
        address: task.name,
        start: async (shard, holding) => {
          invariants.shards.recorder?.onStart(task, shard, holding.token);
          if (this.#program) return this.#program.shards.start(shard, holding);
          const { token, signal, fail } = holding;
          const run = invariants.shards.begin(task, shard, token);
          // Work that has to end at once although the lease is valid takes until its stop has ended.
          const end = () => invariants.shards.end(run);
          onAbort(signal, () => (lease.isValid() ? onAbort(lease.signal, end) : end()));
          const hangs = !world.quiet && dice.chance(0.02);
          if (hangs) await aborted(signal);
          await process.clock.sleep(dice.magnitude(1, hangs ? 4_000 : 500));
          const isFaulty = invariants.shards.faults.fails(task.host, shard, world.scheduler.now);
          if (isFaulty || (!world.quiet && dice.chance(hangs ? 0.5 : 0.02))) {
            invariants.shards.end(run);
            throw new Error('this shard cannot be begun');
          }
          if (!world.quiet && dice.chance(0.05))
            this.#after(dice.magnitude(1, 9_000), async () => fail('no'));
          return async () => {
            const isSlow = !world.quiet && invariants.shards.wasDamaged;
            const stopMs = isSlow ? dice.between(1, 12_000) : dice.magnitude(1, world.quiet ? 500 : 4_000);
            await process.clock.sleep(stopMs);
            if (this.giveUp && !world.quiet && dice.chance(0.02)) {
              this.giveUp();
              throw new Error('this shard cannot be stopped');
            }
            invariants.shards.stopped(run);
          };
        },
        onEvent: (event) => {
          invariants.shards.recorder?.onEvent(task, event);
          // A read of a map that is old may be taken for one.
          const isExpected = world.conditions.rates['stale-list'] > 0 || invariants.shards.wasDamaged;
          if (event.type === 'damaged' && !isExpected)
            invariants.onUnexpected(task.name, new Error(`${event.key} ${event.problem}`));
        },
      });
      invariants.shards.onMember(task);
    } catch (error) {
      // A store that refuses may allow it the next time.
      if (error instanceof StoreError) this.#after(dice.magnitude(50, 2_000), () => this.#takePart());
      else if (!(error instanceof LeaseLostError || error instanceof LeaseReleasedError) && lease.isValid())
        invariants.onUnexpected(task.name, error);
    }
  }

  #after(ms: number, act: () => Promise<void>): void {
    const { scheduler } = this.world;
    scheduler.at(scheduler.now + ms, this.task.process, () => void act());
  }
}
