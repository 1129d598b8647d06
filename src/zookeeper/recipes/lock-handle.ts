import { withTimeout } from '../../core/base/abort.js';
import { type Clock, sleepUntil } from '../../core/base/clock.js';
import { Holder, Overtaken } from '../../core/lease/hold/holder.js';
import type { LossReason } from '../../core/lease/model/lease.js';
import { type LeaseTiming, leaseTiming } from '../../core/lease/model/lease-timing.js';
import { harmless } from '../../core/lease/model/lease-tracer.js';
import { LockLostError, LockReleasedError } from '../../core/lease/model/lock-lost.js';
import type { BoundSession } from '../client/bound-session.js';
import { checkOperations } from '../client/operation-check.js';
import { erase, whileConnectionIsAway } from '../client/retry.js';
import type { SessionDeadline } from '../client/session-deadline.js';
import { isFault, isNotApplied, type MultiOperation, type Watch } from '../client/zookeeper.js';
import type { Recipe } from './recipe.js';

/**
 * A lock, a lease of a semaphore or a term of leadership that this process holds. Dispose of it
 * (`await using`) or call `release()` when the work has ended; stop the work when `signal` aborts.
 */
export interface LockHandle extends AsyncDisposable {
  /** The own znode. */
  readonly path: string;
  /**
   * The fencing token, the znode's czxid: of locks that exclude each other, the later one has the greater.
   * Send it along with every write it should protect.
   */
  readonly token: bigint;
  /**
   * Aborts with a {@link LockLostError} before the session can have ended, and not on `release()`. Before an
   * act that must not happen twice, ask `isValid()`.
   */
  readonly signal: AbortSignal;
  /** When it ends unless a heartbeat is answered, in milliseconds on the monotonic clock. */
  readonly deadline: number;
  /**
   * True while this process can prove that it holds. Compares clocks when asked, so it is right even after a
   * pause.
   */
  isValid(): boolean;
  /**
   * Carries out all of the operations, or none; none where the own znode is gone.
   *
   * @throws {LockLostError} or {LockReleasedError}: nothing was carried out @throws {ZooKeeperError} as
   * `multi` does; where its `outcome` is `unknown`, perhaps all were
   */
  guard(operations: readonly MultiOperation[]): Promise<void>;
  /**
   * Gives it back: resolves when the znode is gone, or after the deadline, and never rejects. Deletes it
   * later where ZooKeeper is away. Later calls share the first one's end.
   */
  release(): Promise<void>;
}

/**
 * How long it is held before its znode is watched, in milliseconds, or as a share of the session's time-out:
 * that it was deleted meanwhile is reported then.
 */
const WATCH_AFTER_MS = 100;
const WATCH_SHARE = 1 / 12;
/** How long it may be held before it has a timer that its end has to stop, in milliseconds. */
const MOMENT_MS = 5;
/** The end of the current moment, by clocks: one timer for all that are acquired in it. */
const moments = new WeakMap<Clock, Promise<void>>();

function endOfMoment(clock: Clock): Promise<void> {
  const end = moments.get(clock) ?? clock.sleep(MOMENT_MS).then(() => void moments.delete(clock));
  moments.set(clock, end);
  return end;
}

/** What the contest has won. */
export interface HeldZnode {
  readonly session: BoundSession;
  readonly path: string;
  readonly token: bigint;
  readonly deadline: SessionDeadline;
  /** Called once, when the tenure ends in either way. */
  readonly onEnd: () => void;
}

/**
 * Holds by an ephemeral znode. A renewal is a heartbeat, a transaction that checks the znode: reads prove
 * nothing (docs/design/allocation.md, "One holder"). Given up or lost, the znode is deleted until that is
 * certain, since a session may outlive its lock.
 */
export class ZnodeHolder extends Holder<LockLostError> implements LockHandle {
  readonly token: bigint;
  #path: string;
  #watch: Watch | undefined;
  /** The path that the znode is about to move to. It may be there already. */
  #next: string | undefined;
  #moving: Promise<void> | undefined;
  /** The possible paths of this tenure's znode. */
  readonly #paths = new Set<string>();
  readonly #forgetSession: () => void;

  constructor(
    private readonly held: HeldZnode,
    private readonly recipe: Recipe,
  ) {
    const { clock, random, zookeeper } = recipe;
    super({ clock, random, emit: () => undefined, tracer: harmless(undefined) }, {});
    this.token = held.token;
    this.#path = held.path;
    this.#paths.add(held.path);
    this.#forgetSession = zookeeper.onState(() => this.#onSession());
    this.#onSession();
    void this.#settle();
  }

  get path(): string {
    return this.#path;
  }

  get deadline(): number {
    return this.held.deadline.until;
  }

  async guard(operations: readonly MultiOperation[]): Promise<void> {
    // Its path is known when it has moved, or not.
    checkOperations(operations);
    if (this.#moving) await this.#moving.catch(() => undefined);
    this.check();
    const { path } = this;
    try {
      await this.held.session.multi([{ type: 'check', path }, ...operations]);
    } catch (error) {
      if (isFault(error, 'no-node') && error.path === path) this.#loseZnode();
      if (isNotApplied(error)) this.check();
      throw error;
    }
  }

  /**
   * Puts a znode at another path in the place of the own one, in one transaction: the tenure and its token go
   * on.
   * @throws {LockLostError}
   */
  protected async moveTo(path: string): Promise<void> {
    this.check();
    const from = this.#path;
    const { session } = this.held;
    const { data } = this.recipe;
    this.#watch?.close();
    const move: readonly MultiOperation[] = [
      { type: 'create', path, data, mode: 'ephemeral' },
      { type: 'remove', path: from },
    ];
    this.#next = path;
    this.#paths.add(path);
    try {
      const retry = whileConnectionIsAway({ ...this.recipe, signal: this.ending }, session);
      this.#moving = retry((call) => session.multi(move, call));
      await this.#moving;
    } catch (error) {
      // An attempt whose reply was lost has done it.
      if (!isFault(error, 'node-exists')) {
        if (isFault(error, 'no-node')) this.#loseZnode();
        this.#next = undefined;
        this.#watchOwn();
        this.check();
        throw error;
      }
    }
    this.#paths.delete(from);
    this.#path = path;
    this.#next = undefined;
    this.#watchOwn();
  }

  /**
   * A heartbeat every sixth of the session's time-out; the work has to be ended a twelfth of it before the
   * deadline.
   */
  protected override get timing(): LeaseTiming {
    return leaseTiming(this.held.deadline.timeoutMs / 2);
  }

  protected override get renewAt(): number {
    return this.held.deadline.sentAt + this.timing.renewEveryMs;
  }

  protected override async attempt(): Promise<void> {
    const { session, deadline } = this.held;
    const { path } = this;
    const sentAt = this.recipe.clock.monotonic();
    try {
      await session.multi([{ type: 'check', path }], { ...this.call(), reconnectOnTimeout: true });
      this.check();
      deadline.answered(sentAt);
    } catch (error) {
      if (isFault(error, 'session-expired', 'closed')) return this.loseTo('its session has ended');
      if (!isFault(error, 'no-node')) throw error;
      // The znode may just be moving to another path: the next attempt shows.
      if (path !== this.#path || this.#next !== undefined) throw new Overtaken('its znode is moving');
      this.#loseZnode();
    }
  }

  protected override async giveBack(): Promise<void> {
    const { clock } = this.recipe;
    const leftMs = () => Math.max(1, this.deadline - clock.monotonic());
    try {
      const timeoutMs = leftMs();
      await Promise.all(
        [...this.#paths].map((path) => this.held.session.remove(path, undefined, { timeoutMs })),
      );
    } catch {
      await withTimeout(clock, leftMs(), this.#erase());
    }
  }

  protected override whenOver(lost: LockLostError | undefined): void {
    this.#watch?.close();
    this.#forgetSession();
    this.held.onEnd();
    if (lost) void this.#eraseAfter(lost.deadline);
  }

  protected override mayPass(): boolean {
    return false;
  }

  protected override lossError(
    reason: LossReason,
    deadline: number,
    detail: string,
    cause?: unknown,
  ): LockLostError {
    return new LockLostError(this.recipe.path, this.token, reason, deadline, detail, cause);
  }

  protected override releasedError(): LockReleasedError {
    return new LockReleasedError(this.recipe.path, this.token);
  }

  /** Begins what one that is held for a moment only is spared. It is valid for longer than that. */
  async #settle(): Promise<void> {
    const { clock } = this.recipe;
    const until = clock.monotonic() + Math.min(WATCH_AFTER_MS, this.held.deadline.timeoutMs * WATCH_SHARE);
    await endOfMoment(clock);
    if (!this.isHeld) return;
    // After a pause of this process at once.
    await sleepUntil(clock, until, this.ending).catch(() => undefined);
    this.#watchOwn();
    this.start();
  }

  #loseZnode(): void {
    this.loseTo('its znode has been deleted');
  }

  #watchOwn(): void {
    if (this.#next !== undefined || !this.isHeld) return;
    this.#watch?.close();
    this.#watch = this.recipe.zookeeper.watchRemoval(this.#path, () => this.#loseZnode());
  }

  #onSession(): void {
    const { session, deadline } = this.held;
    const { state } = this.recipe.zookeeper;
    if (session.isOver)
      this.loseTo(`its session has ${state.status === 'closed' ? 'been closed' : 'expired'}`);
    else if (state.status === 'connected') deadline.limit(state.timeoutMs);
  }

  /** The work may continue until the deadline, so the znode stays until then. */
  async #eraseAfter(deadline: number): Promise<void> {
    await sleepUntil(this.recipe.clock, deadline);
    await this.#erase();
  }

  async #erase(): Promise<void> {
    await Promise.all([...this.#paths].map((path) => erase(this.recipe, this.held.session, path)));
  }
}
