import { LockLostError, LockReleasedError } from '../../../../src/core/lease/model/lock-lost.js';
import { elect } from '../../../../src/zookeeper/recipes/elect.js';
import { lock, type ZooKeeperLock } from '../../../../src/zookeeper/recipes/lock.js';
import type { LockHandle } from '../../../../src/zookeeper/recipes/lock-handle.js';
import {
  readLock,
  type WriteLockHandle,
  writeLock,
} from '../../../../src/zookeeper/recipes/read-write-lock.js';
import type { RecipeOptions, WaitOptions } from '../../../../src/zookeeper/recipes/recipe.js';
import { semaphore } from '../../../../src/zookeeper/recipes/semaphore.js';
import { bounded } from '../checks/bounded.js';
import { type Grant, GUARDED, LockObserver } from '../checks/lock-observer.js';
import type { Run } from '../machine-host.js';
import type { RecipeWorld } from '../world.js';
import { GIVEN_UP, isExpected } from './expected.js';
import type { Scenario } from './scenario.js';

/** Where all contend. */
const PATH = '/locks/one';
/** How many leases the semaphore has. */
const LEASES = 2;
/** What an `acquire()` that does not wait may take, in milliseconds. */
const TRY_MS = 5_000;
/** The same for a semaphore, which is two locks. */
const SEMAPHORE_TRY_MS = 15_000;

/** Tasks that contend for a lock, for reading and writing, for leases of a semaphore, or for leadership. */
export class LockScenario implements Scenario {
  readonly containers = [`${PATH}/locks`, `${PATH}/leases`, PATH, '/locks'];
  readonly #observer: LockObserver;
  /** When each task last had it, in true time. */
  readonly #turns = new Map<number, number>();
  readonly #isSemaphore: boolean;

  constructor(private readonly world: RecipeWorld) {
    this.#isSemaphore = world.conditions.scenario === 'semaphore';
    this.#observer = new LockObserver(world, {
      path: PATH,
      capacity: this.#isSemaphore ? LEASES : 1,
      ordered: !this.#isSemaphore,
      watches: this.#isSemaphore ? 3 : 1,
      watchable: this.#isSemaphore ? `${PATH}/leases` : undefined,
    });
    world.ensemble.leader.decideOwn([{ type: 'create', path: GUARDED, data: '0', mode: 'persistent' }]);
  }

  afterStep(run: Run): void {
    this.#observer.afterStep(run);
  }

  async live(run: Run): Promise<void> {
    const { world } = this;
    const { zookeeper, process, dice } = run;
    const contenders = this.#contenders(run, { clock: process.clock, random: dice.fork(1), data: run.name });
    while (zookeeper.state.status !== 'closed' && !world.stopping) {
      const contender = dice.pick(contenders);
      try {
        const handle = await this.#acquire(run, contender.lock);
        this.#turns.set(run.host, world.scheduler.now);
        await this.#hold(run, this.#observer.granted(run, handle, contender.shared));
      } catch (error) {
        this.#judge(run, 'acquire', error);
      }
      await process.clock.sleep(dice.between(0, world.conditions.grantedMs / 4));
    }
  }

  #contenders(
    { zookeeper }: Run,
    options: RecipeOptions,
  ): readonly { readonly lock: ZooKeeperLock; readonly shared: boolean }[] {
    const { scenario } = this.world.conditions;
    if (scenario === 'semaphore')
      return [{ lock: semaphore(zookeeper, PATH, { ...options, leases: LEASES }), shared: false }];
    if (scenario === 'election')
      return [{ lock: elect(zookeeper, PATH, { ...options, id: options.data }), shared: false }];
    if (scenario === 'lock') return [{ lock: lock(zookeeper, PATH, options), shared: false }];
    return [
      { lock: readLock(zookeeper, PATH, options), shared: true },
      { lock: writeLock(zookeeper, PATH, options), shared: false },
    ];
  }

  #acquire(run: Run, contender: ZooKeeperLock): Promise<LockHandle> {
    const { world } = this;
    const { dice, process } = run;
    const longestMs = 3 * world.conditions.grantedMs;
    const options: { timeoutMs?: number; signal?: AbortSignal } = {};
    let limitMs: number | undefined;
    // In the end all wait until it is their turn.
    const kind = world.quiet ? 'waits' : dice.pick(['waits', 'tries', 'waits a while', 'gives up'] as const);
    if (kind === 'tries') limitMs = this.#isSemaphore ? SEMAPHORE_TRY_MS : TRY_MS;
    else if (kind !== 'waits') limitMs = dice.magnitude(20, longestMs);
    if (kind === 'tries') options.timeoutMs = 0;
    if (kind === 'waits a while') options.timeoutMs = limitMs as number;
    if (kind === 'gives up' || kind === 'waits') {
      const controller = new AbortController();
      const giveUp = () => controller.abort(GIVEN_UP);
      options.signal = controller.signal;
      if (kind === 'gives up') void process.clock.sleep(limitMs as number).then(giveUp);
      else world.onStop.push(() => world.scheduler.at(world.scheduler.now, process, giveUp));
    }
    if (world.recording)
      world.note(run.name, `acquires: ${kind}${limitMs === undefined ? '' : `, ${Math.round(limitMs)} ms`}`);
    return bounded(world, run, 'acquire', limitMs, contender.acquire(options as WaitOptions));
  }

  async #hold(run: Run, grant: Grant): Promise<void> {
    const { world } = this;
    const { handle } = grant;
    const { clock } = run.process;
    const { dice } = run;
    const until =
      clock.monotonic() +
      (world.quiet ? dice.between(0, 500) : dice.magnitude(5, 2 * world.conditions.grantedMs));
    if (!grant.shared && 'downgrade' in handle && dice.chance(0.3))
      await this.#downgrade(run, grant, handle as WriteLockHandle);
    while (!handle.signal.aborted && clock.monotonic() < until && !world.stopping) {
      if (!grant.shared && !this.#isSemaphore && dice.chance(0.3)) {
        const write = handle.guard([{ type: 'set', path: GUARDED, data: String(handle.token) }]);
        await write.catch((error: unknown) => this.#judge(run, 'guard', error));
      }
      await clock.sleep(Math.max(0, Math.min(until - clock.monotonic(), dice.between(1, 400))));
    }
    const isLost = handle.signal.aborted;
    if (isLost && world.recording) world.note(run.name, `has lost it: ${String(handle.signal.reason)}`);
    if (isLost)
      await clock.sleep(
        dice.chance(0.5)
          ? 0
          : Math.max(0, (handle.signal.reason as LockLostError).deadline - clock.monotonic()),
      );
    grant.isOver = isLost;
    if (!isLost || dice.chance(0.5)) {
      if (world.recording) world.note(run.name, 'releases');
      run.releasing = true;
      await bounded(
        world,
        run,
        'release',
        Math.max(0, handle.deadline - clock.monotonic()),
        handle.release(),
      );
      run.releasing = false;
      if (world.recording) world.note(run.name, 'has released');
    }
    this.#observer.ended(grant);
  }

  async #downgrade(run: Run, grant: Grant, handle: WriteLockHandle): Promise<void> {
    await run.process.clock.sleep(run.dice.between(0, 200));
    // From now on others may read.
    grant.shared = true;
    if (this.world.recording) this.world.note(run.name, 'lets readers in');
    await handle.downgrade().catch((error: unknown) => this.#judge(run, 'downgrade', error));
  }

  #judge(run: Run, what: string, error: unknown): void {
    if (this.world.recording) this.world.note(run.name, `${what} fails: ${String(error)}`);
    const isOver = error instanceof LockLostError || error instanceof LockReleasedError;
    if (!isOver && !isExpected(error))
      this.world.fail('errors', `${run.name}: ${what} fails: ${String(error)}`);
  }

  waiting(runs: readonly Run[]): string | undefined {
    const late = runs.find(({ host }) => (this.#turns.get(host) ?? 0) < this.world.conditions.quietAt);
    return late && `${late.name} did not have its turn since the faults have ended`;
  }

  atEnd(): void {
    this.#observer.atEnd(this.world.ensemble.leader.tree);
  }
}
